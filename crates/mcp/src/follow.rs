//! The state of an execution after some time, as the answer of a tool.

use crate::ask::{SettledOrAsking, settle};
use crate::execution_answer::ExecutionAnswer;
use crate::tool::ToolAnswer;
use crate::tool_request::ToolRequest;
use crate::wait::settled;
use rutter_app::error::AppError;
use rutter_core::execution::ExecutionIdentity;
use std::time::Duration;

/// Waits, asks the user where necessary, and returns the state.
pub(crate) async fn follow(
    request: &ToolRequest,
    identity: &ExecutionIdentity,
    span: Duration,
    declined: bool,
) -> Result<ToolAnswer, AppError> {
    let settled = match declined {
        true => SettledOrAsking::View(Box::new(settled(request, identity, span).await?)),
        false => settle(request, identity, span).await?,
    };
    match settled {
        SettledOrAsking::View(view) => {
            ToolAnswer::done(&ExecutionAnswer::with_results(request, identity, &view).await?)
        }
        SettledOrAsking::Ask(required) => Ok(ToolAnswer::Ask(*required)),
    }
}
