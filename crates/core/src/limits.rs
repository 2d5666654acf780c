//! Every limit of plans and executions. Whatever exceeds one is refused, with the name of the limit.

use crate::time::Millis;

pub const PLAN_BYTES_MAX: usize = 1 << 20;
pub const PLAN_STEPS_MAX: usize = 1_000;
/// `depends_on` and references together.
pub const PLAN_EDGES_MAX: usize = 10_000;
pub const DEPTH_MAX: usize = 64;
pub const KEYS_MAX: usize = 10_000;
pub const ITEMS_MAX: usize = 100_000;
pub const STRING_BYTES_MAX: usize = 1 << 20;
/// Integers beyond ±(2^53 − 1) do not survive every JSON reader.
pub const INTEGER_MAX: i64 = (1 << 53) - 1;

pub const CATALOG_TOOLS_MAX: usize = 10_000;

pub const NAME_CHARS_MAX: usize = 128;
pub const TEXT_BYTES_MAX: usize = 16 << 10;
pub const TAGS_MAX: usize = 64;

/// Findings reported for one document; a hostile document could cause more findings than it has bytes.
pub const FINDINGS_MAX: usize = 1_000;
/// Suggestions for one plan.
pub const SUGGESTIONS_MAX: usize = 100;
/// Pointers and messages of all findings together; a key can be as long as the document.
pub const FINDINGS_BYTES_MAX: usize = 1 << 20;

pub const EXPRESSION_BYTES_MAX: usize = 4 << 10;
/// Nesting of brackets, signs, negations and `else`. Each level uses stack, in the parser and in the evaluator.
pub const EXPRESSION_DEPTH_MAX: usize = 32;
pub const EXPRESSION_FUEL: u64 = 50_000;
/// The largest value that an expression computes, as bytes of JSON: a joined text, a filtered list. A value that is only
/// picked, such as `steps.fetch.result.text`, is not computed.
pub const COMPUTED_BYTES_MAX: usize = 256 << 10;
/// The parameters of one call as the plan writes them, expressions included.
pub const TEMPLATE_BYTES_MAX: usize = 256 << 10;
/// The parameters of one call once its expressions are evaluated, and the largest value an expression can pick.
pub const PARAMETERS_BYTES_MAX: usize = PAYLOAD_BYTES_MAX;
/// What is kept as context of an execution, and an answer to a question of a tool.
pub const VALUE_BYTES_MAX: usize = 256 << 10;

pub const SCHEMA_BYTES_MAX: usize = 256 << 10;
pub const SCHEMA_NODES_MAX: usize = 20_000;
/// Nodes of a schema once its references are followed.
pub const SCHEMA_REACH_MAX: usize = 20_000;

pub const PARALLEL_MAX: u32 = 64;
pub const ATTEMPTS_MAX: u32 = 10;
pub const BACKOFF_MAX: Millis = Millis::hours(1);
/// The largest factor between one pause between attempts and the next.
pub const BACKOFF_FACTOR_MAX: f64 = 10.0;
pub const TIMEOUT_MAX: Millis = Millis::hours(24);
pub const STEP_TIMEOUT_MAX: Millis = Millis::hours(24 * 30);
pub const DEADLINE_MAX: Millis = Millis::hours(24 * 90);
/// How long an agent that drives may be silent, and the default.
pub const AGENT_TIMEOUT_MAX: Millis = Millis::hours(24 * 90);
pub const AGENT_TIMEOUT_DEFAULT: Millis = Millis::seconds(30 * 60);
/// Timers that came due, listed when an execution is held.
pub const HOLD_DUE_MAX: usize = 100;
pub const APPROVAL_EXPIRES_MAX: Millis = Millis::hours(24 * 30);
pub const FAN_OUT_MAX: u32 = 10_000;
pub const FAN_OUT_DEFAULT: u32 = 1_000;
pub const PRIORITY_MAX: i32 = 1_000;

pub const ATTEMPT_TIMEOUT_DEFAULT: Millis = Millis::seconds(60);
/// The longest that an undo waits for a call that may still be under way, unless the plan says how long such a call takes.
pub const UNDO_WAIT_MAX: Millis = Millis::hours(1);
pub const DEADLINE_DEFAULT: Millis = Millis::hours(24);
pub const APPROVAL_EXPIRES_DEFAULT: Millis = Millis::hours(24);
pub const ATTEMPTS_DEFAULT: u32 = 3;
pub const COMPENSATION_ATTEMPTS_DEFAULT: u32 = 5;
pub const BACKOFF_INITIAL_DEFAULT: Millis = Millis::seconds(1);
pub const BACKOFF_CAP_DEFAULT: Millis = Millis::seconds(60);

/// How long a probe's "it did not happen" can be made to wait.
pub const PROBE_SETTLE_MAX: Millis = Millis::hours(24);

/// How long a tool remembers an idempotency key. Later the same key would be a new call.
pub const KEY_WINDOW_DEFAULT: Millis = Millis::hours(24);
pub const KEY_WINDOW_MAX: Millis = Millis::hours(24 * 365);

/// How long a call may wait for a server that takes none after failures; then it is made, and refused as long as that
/// lasts. Longer than any pause of a server, so that its next try can come first.
pub const SERVER_WAIT_MAX: Millis = Millis::seconds(600);

/// Attempts one part may lose to crashes before a person must decide.
pub const LOSSES_MAX: u32 = 20;
pub const REPLANS_MAX: u32 = 100;
/// How often a call or a new plan that a person has denied may be put to a person again, unless the operator says otherwise.
pub const ASK_AGAIN_DEFAULT: u32 = 3;
pub const POLICY_RULES_MAX: usize = 1_000;
/// The most calls that a policy's limit can allow, and its longest window.
pub const POLICY_CALLS_MAX: u32 = 100_000;
pub const POLICY_WINDOW_MAX: Millis = Millis::hours(24 * 30);
pub const REASON_BYTES_MAX: usize = 4 << 10;
/// Before a call that is not `read_only`, older definitions of a server that does not announce changes are listed again.
pub const DEFINITION_AGE_MAX: Millis = Millis::seconds(5);
/// How long the check of a plan waits for a server whose tools are known from before.
pub const KNOWN_SERVER_WAIT: Millis = Millis::seconds(2);
/// The same for a server that has never listed its tools.
pub const UNKNOWN_SERVER_WAIT: Millis = Millis::seconds(5);
/// How long a server may take to answer a ping after a call of it timed out.
pub const PING_TIMEOUT: Millis = Millis::seconds(5);
/// The ticket under which a tool can be asked about a call it still works on.
pub const TICKET_BYTES_MAX: usize = 1 << 10;
/// What a tool needs to continue a call from the answer to its question. A larger one is not kept: the question is then
/// lost with the process, and its call in doubt.
pub const CONTINUATION_BYTES_MAX: usize = 64 << 10;
/// Entries of one execution; beyond it no forward call starts until a person raises the limit.
pub const ENTRIES_MAX: u64 = 50_000;

/// The parameters or the result of one call, as bytes of JSON.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;
/// Larger payloads are stored as blobs, each content once.
pub const PAYLOAD_INLINE_MAX: usize = 64 << 10;
/// An entry without its payloads.
pub const ENTRY_BYTES_MAX: usize = 4 << 20;
pub const APPEND_ENTRIES_MAX: usize = 50_000;
pub const COMMAND_BYTES_MAX: usize = 1 << 20;
/// Pending commands of one execution.
pub const COMMANDS_MAX: usize = 1_000;
pub const REQUEST_KEY_BYTES_MAX: usize = 255;
/// The value of one register item.
pub const NOTE_BYTES_MAX: usize = 1 << 20;
/// Register changes in one write.
pub const CHANGES_MAX: usize = 1_000;
/// Ids of register items, readers, destinations and events.
pub const ID_CHARS_MAX: usize = 255;
/// The body of one delivery.
pub const DELIVERY_BYTES_MAX: usize = 256 << 10;
/// Deliveries put into the outbox in one write.
pub const DELIVERIES_MAX: usize = 1_000;
/// Items on one page of a list.
pub const PAGE_MAX: u32 = 1_000;
