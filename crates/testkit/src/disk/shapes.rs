//! The plans that the workload executes: one of each shape, with tools that respond at once.

use rutter_core::execution::input::{ExecutionInput, ToolCall};
use rutter_core::hash::Hash;
use rutter_core::id::ToolName;
use rutter_core::plan::check::read_and_check;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::{Driver, Plan};
use rutter_core::tool::{CallOutcome, FailureCategory, Safety, SafetySource, Tool, ToolCatalog, ToolFailure};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanShape {
    Chain,
    Diamond,
    /// Sixteen parts at once.
    FanOut,
    /// The last step fails, and the earlier ones are undone.
    Compensated,
}

impl PlanShape {
    pub const ALL: [PlanShape; 4] = [PlanShape::Chain, PlanShape::Diamond, PlanShape::FanOut, PlanShape::Compensated];

    pub fn name(self) -> &'static str {
        match self {
            PlanShape::Chain => "chain",
            PlanShape::Diamond => "diamond",
            PlanShape::FanOut => "fan-out",
            PlanShape::Compensated => "compensated",
        }
    }

    /// The plan, checked once per process.
    pub fn plan(self) -> Arc<Plan> {
        static PLANS: OnceLock<[Arc<Plan>; 4]> = OnceLock::new();
        let plans = PLANS.get_or_init(|| PlanShape::ALL.map(|shape| compile(shape.name(), &shape.document())));
        Arc::clone(&plans[self as usize])
    }

    /// The inputs of its execution; `text` makes them as large as needed.
    pub fn inputs(self, text: &str) -> Value {
        json!({"items": (0..16).collect::<Vec<u32>>(), "text": text})
    }

    fn document(self) -> Value {
        let undoable = |id: &str, needs: &[&str]| {
            json!({"id": id, "tool": "t.set", "depends_on": needs, "cancellable": "reversible",
                "compensation": {"tool": "t.undo", "parameters": {"id": "{{ result.id }}"}}})
        };
        let set = |id: &str, needs: &[&str]| json!({"id": id, "tool": "t.set", "depends_on": needs});
        match self {
            PlanShape::Chain => json!({"steps": [set("a", &[]), set("b", &["a"]), set("c", &["b"])]}),
            PlanShape::Diamond => json!({"max_parallel": 2, "steps": [
                set("a", &[]), set("b", &["a"]), set("c", &["a"]), set("d", &["b", "c"])]}),
            PlanShape::FanOut => json!({"max_parallel": 16, "steps": [
                {"id": "a", "tool": "t.set", "for_each": {"items": "inputs.items", "max_parallel": 16},
                    "parameters": {"of": "{{ item }}"}}]}),
            PlanShape::Compensated => json!({"on_failure": "compensate", "steps": [
                undoable("a", &[]), undoable("b", &["a"]), {"id": "c", "tool": "t.fail", "depends_on": ["b"]}]}),
        }
    }
}

/// The tool's response to a call.
pub fn answer(call: &ToolCall) -> ExecutionInput {
    let outcome = match call.tool.as_str() {
        "t.fail" => CallOutcome::NotDone(ToolFailure::new(FailureCategory::ToolError, "the harbour is closed")),
        _ => {
            let result = json!({"id": call.part.to_string(), "attempt": call.attempt});
            CallOutcome::Done { result: Arc::new(result), cost_micros: 1 }
        }
    };
    ExecutionInput::Returned { part: call.part.clone(), side: call.side, attempt: call.attempt, outcome }
}

fn compile(name: &str, document: &Value) -> Arc<Plan> {
    let mut document = document.clone();
    document["name"] = json!(name);
    document["inputs"] = json!({"items": {"type": "array"}, "text": {"type": "string"}});
    document["tags"] = json!(["torture"]);
    let text = document.to_string();
    let checked = read_and_check(text.as_bytes(), DocumentFormat::Json, &catalog(), Driver::Server, None);
    checked.plan.unwrap_or_else(|| panic!("the plan {name} is wrong: {:?}", checked.diagnostics))
}

/// All may be called again after a crash: the store is under test here.
fn catalog() -> ToolCatalog {
    let tools = ["t.set", "t.undo", "t.fail"].map(|name| {
        let tool = Tool {
            name: ToolName::new(name),
            description: String::new(),
            input: Arc::new(json!({"type": "object"})),
            output: None,
            safety: Safety::Idempotent,
            safety_source: SafetySource::Configured,
            key_parameter: None,
            sends_key: false,
            grace: None,
            key_window: None,
            attempts: Default::default(),
            definition: Hash::of(&[name.as_bytes()]),
        };
        (tool.name.clone(), Arc::new(tool))
    });
    ToolCatalog { tools: tools.into_iter().collect(), ..ToolCatalog::default() }
}
