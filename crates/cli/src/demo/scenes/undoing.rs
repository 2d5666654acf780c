//! A carrier that refuses: completed steps are undone.

use super::{ORDER, SceneContext, order};
use crate::demo::ending::SceneEnding;
use crate::demo::tools::DemoFault;
use rutter_core::execution::view::ExecutionStatus;
use serde_json::json;

pub(super) fn play(theatre: &SceneContext<'_>) -> anyhow::Result<SceneEnding> {
    let place = theatre.directory;
    let before = place.call_log()?.len();
    place.set_fault("carrier.ship", Some(DemoFault::Refuses("no pick-up at this address")))?;
    let execution = place.carry_out(ORDER, order("4711", 129))?;
    let execution = theatre.watch(execution).until_end()?;
    place.set_fault("carrier.ship", None)?;

    let mut ending = SceneEnding::new("the execution ended compensated: refund, then release; no mail");
    ending.check("it ended compensated", execution.status() == ExecutionStatus::Compensated);
    let lines = place.call_log()?.since(before);
    let made: Vec<&str> = lines.effects().map(|line| line.tool.as_str()).collect();
    let expected = ["inventory.reserve", "payments.charge", "payments.refund", "inventory.release"];
    ending.check("refund first, then release, and nothing else", made == expected);
    let refund = lines.effects().find(|line| line.tool == "payments.refund");
    let refunded = refund.map(|line| &line.arguments["receipt"]);
    ending.check("the refund is of the charge that was made", refunded == Some(&json!("receipt-1")));
    ending.count(&lines, &["carrier.ship", "mail.confirm"]);
    Ok(ending)
}
