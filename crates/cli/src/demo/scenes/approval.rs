//! A yes to one exact call: an agent cannot give it, and it does not hold for another call.

use super::{ORDER, Theatre, order};
use crate::demo::ending::Ending;
use crate::demo::place::tenant;
use crate::demo::teller::{Progress, Sign};
use crate::demo::watch::asked;
use anyhow::Context;
use rutter_core::actor::Actor;
use rutter_core::execution::view::Status;
use rutter_core::hash::Hash;
use rutter_engine::control::Control;
use rutter_server::socket::{Greeting, Sent, What};
use serde_json::Value;

const CHARGE: &str = "payments.charge";

pub(super) fn play(theatre: &Theatre<'_>) -> anyhow::Result<Ending> {
    let place = theatre.place;
    let before = place.book()?.len();
    let probe = "    probe: { tool: payments.find";
    let plan = ORDER.replace(probe, &format!("    approval: {{ required: true, expires: 4h }}\n{probe}"));
    let mut watch = theatre.watch(place.carry_out(&plan, order("4713", 1290))?);
    let execution = watch.until_rest()?;
    let (part, call) = asked(&execution).context("no call waits for approval")?;

    let mut ending = Ending::new("two wrong approvals refused, the right one used once; completed");
    let sent = Sent {
        tenant: tenant(),
        execution: watch.identity.execution.clone(),
        actor: Actor::agent("pilot"),
        what: What::Control(Control::Approve { part: Some(part.clone()), call: Some(call) }),
        reason: "the agent wants to get on".to_owned(),
        key: None,
    };
    let answer = place.ask(&Greeting::Say(Box::new(sent)))?;
    refused(theatre, "agent pilot approves its own call", &answer)?;
    ending.check("an agent is refused", answer["error"]["code"] == "execution.not_a_person");

    let id = watch.identity.execution.to_string();
    let approve = |call: &Hash| {
        let call = call.to_string();
        place.type_in(&["exec", "approve", &id, "--step", "charge", "--call", &call, "--no-wait"])
    };
    let (code, answer) = approve(&Hash::of_fields("demo/another-call", &[]))?;
    refused(theatre, "operator approves a call of another amount", &answer)?;
    ending.check("a yes to another call is refused", answer["error"]["code"] == "execution.other_call");
    ending.check("the command says so", code == Some(2));
    ending.check("nothing was charged meanwhile", place.book()?.since(before).effects_of(CHARGE) == 0);

    theatre.teller.text(&format!("\n  $ rutter exec approve {id} --step charge \\\n"))?;
    theatre.teller.text(&format!("        --call {}...\n\n", call.short()))?;
    let (code, _) = approve(&call)?;
    ending.check("the right one is taken", code == Some(0));
    let execution = watch.until_end()?;
    ending.check("it completed", execution.status() == Status::Completed);
    let lines = place.book()?.since(before);
    ending.check("one charge", lines.effects_of(CHARGE) == 1);
    ending.count(&lines, &[]);
    Ok(ending)
}

fn refused(theatre: &Theatre<'_>, what: &str, answer: &Value) -> anyhow::Result<()> {
    let text = |name: &str| answer["error"][name].as_str().unwrap_or_default().to_owned();
    let words = format!("{what}; refused: {} ({})", text("message"), text("code"));
    let (sign, who) = (Sign::Failed, "charge".to_owned());
    Ok(theatre.teller.progress(&Progress { sign, who, words })?)
}
