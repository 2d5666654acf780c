//! A carrier that refuses: what was done is undone.

use super::{ORDER, Theatre, order};
use crate::demo::ending::Ending;
use crate::demo::tools::Fault;
use rutter_core::execution::view::Status;
use serde_json::json;

pub(super) fn play(theatre: &Theatre<'_>) -> anyhow::Result<Ending> {
    let place = theatre.place;
    let before = place.book()?.len();
    place.set_fault("carrier.ship", Some(Fault::Refuses("no pick-up at this address")))?;
    let execution = place.carry_out(ORDER, order("4711", 129))?;
    let execution = theatre.watch(execution).until_end()?;
    place.set_fault("carrier.ship", None)?;

    let mut ending = Ending::new("the execution ended compensated: money back, then the lamp; no mail");
    ending.check("it ended compensated", execution.status() == Status::Compensated);
    let lines = place.book()?.since(before);
    let made: Vec<&str> = lines.effects().map(|line| line.tool.as_str()).collect();
    let expected = ["inventory.reserve", "payments.charge", "payments.refund", "inventory.release"];
    ending.check("refund first, then release, and nothing else", made == expected);
    let refund = lines.effects().find(|line| line.tool == "payments.refund");
    let refunded = refund.map(|line| &line.arguments["receipt"]);
    ending.check("the refund is of the charge that was made", refunded == Some(&json!("receipt-1")));
    ending.count(&lines, &["carrier.ship", "mail.confirm"]);
    Ok(ending)
}
