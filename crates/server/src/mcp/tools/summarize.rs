//! `summarize`: an execution or a plan in words, from facts alone.

use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::terse::object;
use crate::mcp::visit::Visit;
use crate::summary::{self, Format, Length};
use rutter_core::id::PlanId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "summarize",
        title: "Summarize an execution or a plan",
        description: "Tell an execution or a plan in words, only from facts in the journal or the plan; no model. Use \
                      to report to the user. `focus`: words to rank by, or key_points, actionable_items, executive, \
                      comprehensive.",
        nature: Nature::Reads,
        toolsets: &[Toolset::Default],
    };
    Tool::new::<Input, Output, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    execution_id: Option<String>,
    plan_id: Option<String>,
    #[serde(default)]
    format: Format,
    #[serde(default)]
    length: Length,
    focus: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Output {
    summary: String,
    next: String,
    text: String,
    #[schemars(with = "String")]
    format: Format,
    #[schemars(with = "String")]
    length: Length,
    // How many of each kind.
    #[schemars(schema_with = "object")]
    facts: BTreeMap<String, usize>,
    resource_uri: String,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let desk = &visit.desk;
    let account = match (&input.execution_id, &input.plan_id) {
        (Some(id), None) => summary::execution::account(desk, &visit.identity(id), input.length).await?,
        (None, Some(id)) => {
            summary::plan::account(desk, &visit.guest.tenant, &PlanId::new(id), input.length).await?
        }
        _ => {
            return Err(Fault::new("server.arguments", "give either execution_id or plan_id")
                .hint("query_history finds executions, find_plans finds plans"));
        }
    };
    let text = summary::write(&account, input.format, input.length, input.focus.as_deref());
    Answer::done(&Output {
        facts: account.counts(),
        summary: account.headline,
        next: account.next,
        text,
        format: input.format,
        length: input.length,
        resource_uri: account.uri,
    })
}
