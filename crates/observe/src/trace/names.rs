//! Names of spans and attributes. The semantic conventions for agents and tools are not final, so every name that
//! follows them is defined here only.

pub const OPERATION: &str = "gen_ai.operation.name";
/// The operation of executing a plan, as the convention calls it.
pub const INVOKE: &str = "invoke_workflow";
pub const INVOKED: &str = "gen_ai.workflow.name";
pub const EXECUTE_TOOL: &str = "execute_tool";
/// The operation of creating a plan.
pub const PLAN: &str = "plan";
pub const TOOL_NAME: &str = "gen_ai.tool.name";
pub const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub const TOOL_RESULT: &str = "gen_ai.tool.call.result";
pub const ERROR_TYPE: &str = "error.type";
pub const MCP_METHOD: &str = "mcp.method.name";
pub const MCP_CALL: &str = "tools/call";
pub const SERVICE_NAME: &str = "service.name";
pub const SERVICE_VERSION: &str = "service.version";

pub const HAND_OVER: &str = "hand_over";
pub const TENANT: &str = "rutter.tenant";
pub const EXECUTION: &str = "rutter.execution";
pub const STEP: &str = "rutter.step";
pub const PART: &str = "rutter.part";
pub const SIDE: &str = "rutter.side";
pub const ATTEMPT: &str = "rutter.attempt";
pub const DRIVER: &str = "rutter.driver";
pub const OUTCOME: &str = "rutter.outcome";
pub const COST_MICROS: &str = "rutter.cost_micros";
pub const REVISION: &str = "rutter.revision";
/// The span is a compensation of an execution that had already ended.
pub const AFTER_THE_END: &str = "rutter.after_the_end";
