//! Commands and answers to an execution.

use crate::executions::{expected_entries, span, wait_and_read};
use crate::idempotent_replies::Idempotency;
use crate::reply::ApiReply;
use crate::request::ApiRequest;
use crate::route::{ApiRoute, RouteSpec};
use rutter_app::command::{Command, CommandArguments, reason_schema};
use rutter_app::error::AppError;
use rutter_app::verb::Verb;
use rutter_app::view::ExecutionView;
use rutter_core::execution::ExecutionIdentity;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

pub(crate) fn routes() -> Vec<ApiRoute> {
    let about = RouteSpec::post(
        "/executions/{id}/signals",
        "sendSignal",
        "Control an execution, or answer a question; each action has its own scope",
    )
    .refuses(&[409, 412, 422])
    .idempotency(Idempotency::Journal);
    vec![ApiRoute::with_body(about, send)]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Signal")]
struct SignalBody {
    action: Verb,
    /// `step` or `step[item]`; needed where more than one question is open.
    step_id: Option<String>,
    /// undo: only these and their dependents.
    steps: Option<Vec<String>>,
    #[serde(default)]
    #[schemars(schema_with = "reason_schema")]
    reason: Option<String>,
    /// cancel: whether to undo what was done; default as the plan says.
    undo: Option<bool>,
    /// resume: after a hold, let happen now what came due; by default the time of the hold does not count.
    expire: Option<bool>,
    /// resume: after a hold, let happen now what came due of these alone: a step, `step[item]`, `deadline`, `time` or
    /// `agent`; all else keeps its time.
    expire_only: Option<Vec<String>>,
    /// resolve, correct: how you know.
    #[serde(default)]
    evidence: Option<Value>,
    /// resolve, correct: the result for later steps.
    #[serde(default)]
    result: Option<Value>,
    /// resolve, correct: nobody knows the result; what reads it fails until it is added with correct.
    result_unknown: Option<bool>,
    /// resolve, correct: false if it certainly did not happen; default true.
    happened: Option<bool>,
    /// approve, reject: the digest of the call you saw, so that no other call is approved.
    call: Option<String>,
    /// answer: what to do about a failed step, a failed undo, or a limit.
    with: Option<Verb>,
    /// reply: the values the tool asked for; absent to decline.
    reply: Option<Map<String, Value>>,
    /// accept_tool: which one, `server.tool`.
    tool: Option<String>,
    /// accept_tool: the definition you saw (`found` of the question), so that no other one is accepted.
    definition: Option<String>,
    /// How long to wait for the end afterwards; default 0.
    #[schemars(range(max = 45))]
    wait_seconds: Option<u64>,
}

async fn send(call: ApiRequest, signal: SignalBody) -> Result<ApiReply<ExecutionView>, AppError> {
    let (identity, span) = (call.identity(), span(signal.wait_seconds)?);
    let if_match = expected_entries(&call, &identity).await?;
    let command = signal.command(&call, &identity, if_match);
    call.app().perform(command).await?;
    Ok(ApiReply::ok(wait_and_read(&call, &identity, span).await?))
}

impl SignalBody {
    fn command(self, call: &ApiRequest, identity: &ExecutionIdentity, if_match: Option<u64>) -> Command {
        let arguments = CommandArguments {
            step: self.step_id,
            steps: self.steps,
            undo: self.undo,
            expire: self.expire,
            expire_only: self.expire_only,
            happened: self.happened,
            result: self.result,
            result_unknown: self.result_unknown,
            evidence: self.evidence,
            call: self.call,
            with: self.with,
            reply: self.reply,
            tool: self.tool,
            definition: self.definition,
        };
        Command {
            principal: call.principal.clone(),
            execution: identity.execution.clone(),
            verb: self.action,
            arguments,
            reason: self.reason,
            request_key: call.key.clone(),
            if_match,
        }
    }
}
