//! Plans of a given shape and size, over one tool with schemas, and executions of them.

use rutter_core::actor::Actor;
use rutter_core::execution::input::{Decision, DecisionContext, ExecutionInput, ToolCall};
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, TenantId, ToolName};
use rutter_core::journal::event::{Event, EventRecord, PlanReference};
use rutter_core::journal::payload::EventPayload;
use rutter_core::plan::check::{PlanCheck, read_and_check};
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::{Driver, Plan};
use rutter_core::time::Timestamp;
use rutter_core::tool::{CallOutcome, Safety, SafetySource, Tool, ToolCatalog};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;

/// The parallelism of every plan here.
const PLACES: u32 = 64;

/// Each step needs the result of the one before.
pub fn chain(steps: usize) -> Value {
    let steps = (0..steps).map(|at| match at.checked_sub(1) {
        None => step(at, "{{ inputs.first }}", &[]),
        Some(before) => step(at, &format!("{{{{ steps.s{before}.result.id }}}}"), &[before]),
    });
    document(steps.collect())
}

/// One step, then all others but one in parallel, then the last.
pub fn diamond(steps: usize) -> Value {
    let last = steps - 1;
    let steps = (0..steps).map(|at| match at {
        0 => step(at, "{{ inputs.first }}", &[]),
        at if at == last => step(at, "{{ steps.s0.result.id }}", &(1..last).collect::<Vec<_>>()),
        at => step(at, "{{ steps.s0.result.id }}", &[0]),
    });
    document(steps.collect())
}

/// Five steps, one after the other, each with as many items as the execution's input.
pub fn fan_out() -> Value {
    let steps = (0..5_usize).map(|at| {
        let needs: Vec<usize> = at.checked_sub(1).into_iter().collect();
        let mut step = step(at, "{{ item }}", &needs);
        step["for_each"] = json!({"items": "inputs.items", "max_parallel": 16, "max_items": 10_000});
        step
    });
    document(steps.collect())
}

fn document(steps: Vec<Value>) -> Value {
    json!({
        "name": "measured",
        "goal": "Know what a plan of this size costs",
        "max_parallel": PLACES,
        "inputs": {
            "type": "object",
            "required": ["first", "items"],
            "properties": {"first": {"type": "string"}, "items": {"type": "array", "items": {"type": "string"}}},
        },
        "steps": steps,
    })
}

fn step(at: usize, id: &str, needs: &[usize]) -> Value {
    json!({
        "id": format!("s{at}"),
        "tool": "shop.put",
        "parameters": {"id": id, "quantity": 3, "note": format!("article {at} of {{{{ inputs.first }}}}")},
        "depends_on": needs.iter().map(|need| format!("s{need}")).collect::<Vec<_>>(),
        "compensation": {"tool": "shop.put", "parameters": {"id": "{{ result.id }}", "quantity": 0}},
    })
}

fn catalog() -> ToolCatalog {
    let name = ToolName::new("shop.put");
    let tool = Tool {
        name: name.clone(),
        description: "Sets how many of an article there are.".into(),
        input: Arc::new(json!({
            "type": "object",
            "required": ["id", "quantity"],
            "properties": {
                "id": {"type": "string", "minLength": 1},
                "quantity": {"type": "integer", "minimum": 0, "maximum": 1000},
                "note": {"type": "string", "maxLength": 200},
            },
            "additionalProperties": false,
        })),
        output: Some(Arc::new(json!({
            "type": "object",
            "required": ["id"],
            "properties": {"id": {"type": "string"}, "before": {"type": "integer"}},
        }))),
        safety: Safety::Idempotent,
        safety_source: SafetySource::Configured,
        key_parameter: None,
        sends_key: false,
        grace: None,
        key_window: None,
        attempts: Default::default(),
        definition: Hash::of(&[b"shop.put"]),
    };
    ToolCatalog { tools: [(name, Arc::new(tool))].into(), ..ToolCatalog::default() }
}

/// Reads and checks a document, as `rutter plan check` does.
pub fn check(bytes: &[u8], format: DocumentFormat) -> PlanCheck {
    read_and_check(bytes, format, &catalog(), Driver::Server, None)
}

pub fn plan(document: &Value) -> Arc<Plan> {
    let checked = check(document.to_string().as_bytes(), DocumentFormat::Json);
    checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics.first()))
}

pub fn opening(plan: &Arc<Plan>, items: usize) -> EventRecord {
    let items: Vec<String> = (0..items).map(|item| format!("article-{item}")).collect();
    let inputs = EventPayload::Present(Arc::new(json!({"first": "article-x", "items": items})));
    let lineage = "measured".to_owned();
    let event =
        Event::ExecutionOpened { plan: PlanReference::of(plan), revision: 1, lineage, driver: Driver::Server, inputs };
    EventRecord { at: Timestamp(0), actor: Actor::rutter(), event }
}

pub fn identity() -> ExecutionIdentity {
    ExecutionIdentity { tenant: TenantId::new("tenant"), execution: ExecutionId::new("exec_measured") }
}

/// An execution with its open calls.
#[derive(Clone)]
pub struct Drive {
    pub execution: Execution,
    pub records: Vec<EventRecord>,
    waiting: VecDeque<ToolCall>,
    now: Timestamp,
}

impl Drive {
    pub fn open(plan: &Arc<Plan>, items: usize) -> Drive {
        let opening = opening(plan, items);
        let execution = Execution::open(identity(), &opening).expect("the plan was checked");
        Drive { execution, records: vec![opening], waiting: VecDeque::new(), now: Timestamp(0) }
    }

    pub fn decide(&mut self, input: ExecutionInput) {
        self.now.0 += 1;
        let moment = DecisionContext { now: self.now, room: PLACES - self.waiting.len() as u32 };
        let Decision { records, calls } =
            self.execution.decide(&Actor::rutter(), input, moment).expect("every input here is possible");
        self.records.extend(records);
        self.waiting.extend(calls);
    }

    /// Answers the oldest open call. Returns whether there was one.
    pub fn answer(&mut self) -> bool {
        let Some(ToolCall { part, side, attempt, .. }) = self.waiting.pop_front() else { return false };
        let result = Arc::new(json!({"id": "article-y", "before": 1}));
        self.decide(ExecutionInput::Returned {
            part,
            side,
            attempt,
            outcome: CallOutcome::Done { result, cost_micros: 0 },
        });
        true
    }

    /// Answers calls until there is none, or until there are this many records.
    pub fn go_on(&mut self, records_max: usize) {
        while self.records.len() < records_max && self.answer() {}
    }
}
