//! An execution as the API tells it: where it stands, what it asks, what came of it.

use crate::mcp::tools::terse::{bytes, shortened};
use crate::words;
use rutter_core::execution::Execution;
use rutter_core::execution::view::{StepView, View};
use rutter_core::id::{ExecutionId, PlanId};
use rutter_core::plan::{Driver, Plan};
use rutter_core::port::query::ExecutionSummary;
use rutter_core::time::calendar::utc;
use rutter_core::tool::Failure;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Results in one answer, all together and each; a step's own result is in the journal.
const RESULTS_BYTES_MAX: usize = 256 << 10;
const RESULT_BYTES_MAX: usize = 64 << 10;

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Execution")]
pub(crate) struct ToldExecution {
    pub(crate) execution_id: String,
    plan_id: String,
    name: String,
    goal: String,
    revision: u32,
    /// Who calls the tools: `server` or `agent`.
    driver: String,
    status: String,
    /// How it stands, in one line.
    summary: String,
    /// Steps that are settled, and all.
    done: usize,
    total: usize,
    calls: u64,
    cost_micros: u64,
    opened_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    last_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    /// When it goes on by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    wake_at: Option<String>,
    /// What waits for somebody.
    questions: Vec<ToldQuestion>,
    /// Where deed and plan differ.
    deviations: Vec<ToldDeviation>,
    /// Effects that are, or may be, still there although it did not complete.
    remains: Vec<String>,
    /// What steps brought, by step, once it has ended; long ones are cut to text.
    #[serde(skip_serializing_if = "Map::is_empty")]
    results: Map<String, Value>,
    /// Where people look at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Deviation")]
struct ToldDeviation {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    description: String,
}

/// Something only somebody else can say. Further fields depend on its kind.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Question", extend("additionalProperties" = true))]
pub(crate) struct ToldQuestion {
    pub(crate) execution_id: String,
    /// `approval`, `doubt`, `failure`, `compensation`, `limit`, `drift` or `tool`.
    kind: String,
    /// The question in words.
    ask: String,
    /// The command with which a person answers.
    person: String,
    #[serde(flatten)]
    #[schemars(skip)]
    fields: Map<String, Value>,
}

/// An execution in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExecutionRow {
    execution_id: String,
    plan_id: String,
    name: String,
    revision: u32,
    driver: String,
    status: String,
    done: u32,
    total: u32,
    questions_count: u32,
    /// Entries of its journal.
    events: u64,
    opened_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    last_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Step")]
pub(crate) struct ToldStep {
    id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    tool: String,
    status: String,
    depends_on: Vec<String>,
    attempts: u32,
    /// Somebody did it, or undid it, by hand.
    by_hand: bool,
    /// It has, or may have, taken effect.
    touched: bool,
    /// Of a fan-out: parts at rest, and all.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<(usize, usize)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<ToldFailure>,
    failure_policy: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    began_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Failure")]
pub(crate) struct ToldFailure {
    category: String,
    message: String,
}

impl ToldFailure {
    pub(crate) fn of(failure: &Failure) -> ToldFailure {
        ToldFailure { category: failure.category.as_str().to_owned(), message: failure.message.clone() }
    }
}

pub(crate) fn driver(driver: Driver) -> String {
    match driver {
        Driver::Server => "server".to_owned(),
        Driver::Agent => "agent".to_owned(),
    }
}

impl ToldExecution {
    pub(crate) fn of(
        plan: &PlanId,
        view: &View,
        results: Map<String, Value>,
        link: Option<&str>,
    ) -> ToldExecution {
        let questions = view.questions.iter().map(|ask| ToldQuestion::of(&view.execution, ask, link));
        let deviations = view.deviations.iter().map(|deviation| ToldDeviation {
            kind: word(&deviation.kind),
            step: deviation.step.as_ref().map(ToString::to_string),
            description: deviation.description.clone(),
        });
        ToldExecution {
            execution_id: view.execution.to_string(),
            plan_id: plan.to_string(),
            name: view.plan.clone(),
            goal: view.goal.clone(),
            revision: view.revision,
            driver: driver(view.driver),
            status: view.status.as_str().to_owned(),
            summary: words::summary(view),
            done: view.settled,
            total: view.total,
            calls: view.calls,
            cost_micros: view.cost_micros,
            opened_at: utc(view.opened_at),
            started_at: view.started_at.map(utc),
            last_at: utc(view.last_at),
            ended_at: view.status.has_ended().then(|| utc(view.last_at)),
            wake_at: view.wake_at.map(utc),
            questions: questions.collect(),
            deviations: deviations.collect(),
            remains: view.remains.iter().map(ToString::to_string).collect(),
            results,
            link: link.map(|link| format!("{link}/executions/{}", view.execution)),
        }
    }
}

impl ToldQuestion {
    pub(crate) fn of(
        execution: &ExecutionId,
        ask: &rutter_core::execution::view::Ask,
        link: Option<&str>,
    ) -> ToldQuestion {
        use rutter_core::execution::view::Ask;
        let mut fields = match json!(ask) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let kind =
            fields.remove("kind").and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
        match ask {
            Ask::Approval { expires_at, .. } => {
                fields.insert("expires_at".to_owned(), json!(utc(*expires_at)));
            }
            Ask::Failure { failures, .. } => {
                let told = failures.iter().map(|(part, failure)| {
                    json!({ "step": part, "category": failure.category, "message": failure.message })
                });
                fields.insert("failures".to_owned(), told.collect());
            }
            _ => {}
        }
        if let Some(link) = link {
            fields.insert("link".to_owned(), json!(format!("{link}/executions/{execution}#questions")));
        }
        ToldQuestion {
            execution_id: execution.to_string(),
            kind,
            ask: ask.to_string(),
            person: words::how(execution, ask),
            fields,
        }
    }
}

impl ExecutionRow {
    pub(crate) fn of(summary: &ExecutionSummary) -> ExecutionRow {
        let row = &summary.row;
        ExecutionRow {
            execution_id: summary.id.to_string(),
            plan_id: summary.plan.to_string(),
            name: summary.name.clone(),
            revision: row.revision,
            driver: driver(row.driver),
            status: row.status.as_str().to_owned(),
            done: row.settled,
            total: row.total,
            questions_count: row.questions,
            events: summary.entries,
            opened_at: utc(row.opened_at),
            started_at: row.started_at.map(utc),
            last_at: utc(row.last_at),
            ended_at: row.status.has_ended().then(|| utc(row.last_at)),
        }
    }
}

impl ToldStep {
    pub(crate) fn all(plan: &Plan, view: &View) -> Vec<ToldStep> {
        view.steps.iter().enumerate().map(|(at, step)| ToldStep::of(plan, at, step)).collect()
    }

    fn of(plan: &Plan, at: usize, step: &StepView) -> ToldStep {
        let planned = &plan.steps[at];
        let needs = plan.graph.needs[at].iter().map(|need| plan.steps[need.step].id.to_string());
        ToldStep {
            id: step.id.to_string(),
            name: planned.name.clone(),
            tool: step.tool.to_string(),
            status: step.status.to_owned(),
            depends_on: needs.collect(),
            attempts: step.attempts,
            by_hand: step.by_hand,
            touched: step.touched,
            items: step.items,
            failure: step.failure.as_ref().map(ToldFailure::of),
            failure_policy: word(&planned.policy.action),
            began_at: step.began_at.map(utc),
            ended_at: step.ended_at.map(utc),
        }
    }
}

/// What steps brought, from the last backwards, as much as fits.
pub(crate) fn results(execution: &Execution) -> Map<String, Value> {
    let mut left = RESULTS_BYTES_MAX;
    let mut results = Map::new();
    for step in execution.plan().steps.iter().rev() {
        let Some(result) = execution.result_of(step.id.as_str()) else { continue };
        let result = shortened(result, RESULT_BYTES_MAX);
        let Some(rest) = left.checked_sub(bytes(&result)) else { break };
        left = rest;
        results.insert(step.id.to_string(), result);
    }
    results
}

/// A word of an enumeration, as JSON has it.
pub(crate) fn word(value: &impl Serialize) -> String {
    json!(value).as_str().unwrap_or_default().to_owned()
}
