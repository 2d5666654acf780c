//! `control`: steers an execution, and says how it stands afterwards. What changes nothing is refused.

use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::ask::{self, Settled, settle};
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::execute_plan::follow;
use crate::mcp::tools::execution::{ExecutionAnswer, looked};
use crate::mcp::tools::terse::{object, text};
use crate::mcp::visit::Visit;
use crate::mcp::wait::span;
use crate::words;
use rutter_core::execution::view::{Ask, View};
use rutter_core::execution::{Execution, Identity};
use rutter_core::id::{PartId, StepId};
use rutter_core::journal::event;
use rutter_core::plan::Driver;
use rutter_engine::Error;
use rutter_engine::control::Control;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

const WAIT_DEFAULT: Duration = Duration::from_secs(10);

pub(super) fn tool() -> Tool {
    let about = About {
        name: "control",
        title: "Steer an execution",
        description: "Pause, resume, cancel or kill an execution; answer a failed step (retry, skip, resolve, stop, \
                      continue, compensate); undo after the end (compensate); take_over to call tools yourself, \
                      hand_back.",
        nature: Nature::Steers,
        toolsets: &[Toolset::Default],
    };
    Tool::new::<Input, ExecutionAnswer, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    execution_id: String,
    action: Action,
    /// `step` or `step[item]`.
    step_id: Option<String>,
    /// compensate: only these and their dependents.
    steps: Option<Vec<String>>,
    /// Needed for kill, skip, resolve, compensate.
    reason: Option<String>,
    /// cancel: default as the plan says.
    undo: Option<bool>,
    /// resolve: how you know.
    #[serde(default)]
    #[schemars(schema_with = "text")]
    evidence: Option<Value>,
    /// resolve: what later steps read.
    #[serde(default)]
    #[schemars(schema_with = "object")]
    result: Option<Value>,
    happened: Option<bool>,
    /// Makes asking twice safe.
    request_id: Option<String>,
    /// Default 10.
    #[schemars(range(max = 45))]
    wait_seconds: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Pause,
    Resume,
    Cancel,
    Kill,
    Retry,
    Skip,
    Resolve,
    Stop,
    Continue,
    Compensate,
    TakeOver,
    HandBack,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let identity = visit.identity(&input.execution_id);
    let span = span(input.wait_seconds, WAIT_DEFAULT)?;
    let part = input.step_id.as_deref().map(part).transpose()?;
    if let Some(heard) = ask::hear(&visit).await? {
        // The action itself was carried out, or put to the person, when the call came for the first time.
        return match input.action {
            Action::Resolve if heard.declined => {
                let view = visit.desk.engine.view(&heard.identity).await?;
                settled_by_a_person(&visit, &heard.identity, &view, part.as_ref()).await
            }
            _ => follow(&visit, &heard.identity, span, heard.declined).await,
        };
    }
    let engine = &visit.desk.engine;
    let view = looked(&visit, &identity, Execution::view).await?;
    if input.action == Action::Resolve && doubt(&view, part.as_ref()).is_some() {
        return by_a_person(&visit, &identity, &view, part.as_ref(), span).await;
    }
    let needs_reason =
        matches!(input.action, Action::Kill | Action::Skip | Action::Resolve | Action::Compensate);
    let reason = input.reason.clone().filter(|reason| !reason.trim().is_empty());
    if needs_reason && reason.is_none() {
        let message = format!("{:?} needs a reason; it stands in the journal", input.action).to_lowercase();
        return Err(Fault::new("server.arguments", message));
    }
    // Nothing happens by itself while the agent is the one to act.
    let is_agents = match input.action {
        Action::TakeOver => true,
        Action::HandBack => false,
        _ => view.driver == Driver::Agent,
    };
    let span = if is_agents { Duration::ZERO } else { span };
    let request = input.request_id.clone();
    let control = input.control(&view, part)?;
    let said = engine.control(&identity, visit.agent(), control, reason.unwrap_or_default(), request).await;
    match said {
        Ok(()) => follow(&visit, &identity, span, false).await,
        Err(Error::Refused(refusal)) => {
            let fault: Fault = refusal.into();
            let view = engine.view(&identity).await?;
            let now = format!("it is {}; next: {}", words::summary(&view), words::next(&view));
            let hint = fault.hint.as_ref().map_or(now.clone(), |hint| format!("{hint}; {now}"));
            Err(fault.hint(hint))
        }
        Err(error) => Err(error.into()),
    }
}

impl Input {
    fn control(self, view: &View, part: Option<PartId>) -> Result<Control, Fault> {
        let answer = |answer| Control::Answer { about: part.clone(), answer };
        Ok(match self.action {
            Action::Pause => Control::Pause,
            Action::Resume => Control::Resume,
            Action::Cancel => Control::Cancel { undo: self.undo },
            Action::Kill => Control::Kill,
            Action::Retry => answer(event::Answer::Retry),
            Action::Skip => answer(event::Answer::Skip),
            Action::Stop => answer(event::Answer::Stop),
            Action::Continue => answer(event::Answer::Continue),
            Action::Resolve => Control::Resolve {
                part,
                happened: self.happened.unwrap_or(true),
                result: self.result.map(Arc::new),
                evidence: self.evidence.map(Arc::new),
            },
            Action::Compensate if view.status.has_ended() => {
                let named = self.steps.into_iter().flatten().chain(self.step_id);
                let steps: Vec<StepId> = named.map(|step| StepId::new(&step)).collect();
                Control::Undo { steps: Some(steps).filter(|steps| !steps.is_empty()) }
            }
            // An answer where it is asked for; otherwise it is stopped first.
            Action::Compensate if self.steps.is_none() && (part.is_some() || asks_once(view)) => {
                answer(event::Answer::Compensate)
            }
            Action::Compensate => {
                let steps = self.steps.map(|steps| steps.iter().map(|step| StepId::new(step)).collect());
                Control::Undo { steps }
            }
            Action::TakeOver => Control::TakeOver,
            Action::HandBack => Control::HandBack,
        })
    }
}

fn part(text: &str) -> Result<PartId, Fault> {
    let wrong = || Fault::new("server.arguments", format!("{text:?} is neither step nor step[item]"));
    PartId::parse(text).ok_or_else(wrong)
}

/// Whether one open question can be answered with compensate.
fn asks_once(view: &View) -> bool {
    let asked = view.questions.iter().filter(|ask| match ask {
        Ask::Failure { answers, .. } | Ask::Limit { answers, .. } => {
            answers.contains(&event::Answer::Compensate)
        }
        _ => false,
    });
    asked.count() == 1
}

fn doubt<'a>(view: &'a View, part: Option<&PartId>) -> Option<&'a Ask> {
    view.questions.iter().find(|ask| match ask {
        Ask::Doubt { part: doubted, .. } => part.is_none_or(|part| part == doubted),
        _ => false,
    })
}

/// An agent's word settles no doubt: the person at the client is asked, if the client can.
async fn by_a_person(
    visit: &Visit,
    identity: &Identity,
    view: &View,
    part: Option<&PartId>,
    span: Duration,
) -> Result<Answer, Fault> {
    if !visit.can_ask {
        return settled_by_a_person(visit, identity, view, part).await;
    }
    match settle(visit, identity, span).await? {
        Settled::Ask(required) => Ok(Answer::Ask(*required)),
        Settled::View(view) => settled_by_a_person(visit, identity, &view, part).await,
    }
}

/// How it stands once no doubt is left; a refusal that says who must act while one is.
async fn settled_by_a_person(
    visit: &Visit,
    identity: &Identity,
    view: &View,
    part: Option<&PartId>,
) -> Result<Answer, Fault> {
    let Some(ask) = doubt(view, part) else {
        return Answer::done(&ExecutionAnswer::with_results(visit, identity, view).await?);
    };
    let how = words::how(&identity.execution, ask);
    let message = "only a person may settle a doubt, and nobody has; nothing was changed";
    Err(Fault::new("execution.not_a_person", message)
        .hint(format!("tell the user to look whether it happened, and then: {how}")))
}
