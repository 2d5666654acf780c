//! The six scenes. Each says what it shows, lets it happen, and checks that it ended as told.

use super::ending::Ending;
use super::journal::{Book, identity, tenant};
use super::stage::{Played, Stage, agent, person};
use super::teller::{Progress, Sign, Teller, WIDTH};
use super::tools::{Fault, Tools};
use crate::plan::preview::guarantee;
use crate::plan::undo_sign;
use crate::report::{Subject, count};
use crate::table::{Cell, Paint, columns, wrapped_to};
use crate::terminal::Terminal;
use anyhow::{Context, anyhow, bail};
use rutter_core::actor::Actor;
use rutter_core::execution::input::{Input, Refusal};
use rutter_core::execution::view::{Ask, Status};
use rutter_core::id::{PartId, StepId, ToolName};
use rutter_core::journal::verify::{Assurance, Trust, verify_export};
use rutter_core::plan::check::read_and_check;
use rutter_core::plan::document::{Document, Format};
use rutter_core::plan::preview::preview;
use rutter_core::plan::{Driver, Plan};
use rutter_core::port::Error;
use rutter_core::tool::{Category, Failure, Outcome, ToolCatalog};
use rutter_store::Archive;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

const ORDER: &str = include_str!("../../../../examples/order.yaml");
const OFF_BOARDING: &str = include_str!("../../../../examples/off-boarding.yaml");
const TOOLS: &str = include_str!("../../../../examples/tools.json");

/// The journal of the second scene, which the last one looks at.
const ORDER_JOURNAL: &str = "2-order";
/// What the last scene writes for somebody else, and what becomes of it.
const ORDER_EXPORT: &str = "6-order.ndjson";
pub(crate) const ALTERED_EXPORT: &str = "6-altered.ndjson";

/// Where the scenes are played.
#[derive(Debug)]
pub(crate) struct Theatre<'a> {
    pub(crate) terminal: &'a Terminal,
    pub(crate) teller: &'a Teller,
    pub(crate) folder: &'a Path,
    pub(crate) book: Rc<Book>,
}

pub(crate) type Scene = fn(&Theatre<'_>) -> anyhow::Result<Ending>;

pub(crate) const SCENES: [(&str, &str, Scene); 6] = [
    (
        "A plan with mistakes",
        "Plans are compiled: every mistake is told before anything happens, with a fix.",
        mistakes,
    ),
    (
        "A carrier that fails for good",
        "What was done is undone, the last thing first, with arguments from what really happened.",
        undoing,
    ),
    (
        "A lost answer and a dead process",
        "This payment service does not promise to drop repeats. A charge that may have happened \
         is not repeated blindly: somebody finds out first.",
        doubt,
    ),
    (
        "A yes to one exact call",
        "Two orders wait for a yes to their charge, one of 129 EUR and this one of 1290 EUR. An \
         approval comes from a person and holds for the very call they saw.",
        approval,
    ),
    (
        "An agent at the wheel",
        "An agent does the work itself, strays from the plan, and dies. Rutter finishes.",
        handing_over,
    ),
    ("The journal", "What is in the journal cannot be changed quietly.", tampering),
];

fn mistakes(theatre: &Theatre<'_>) -> anyhow::Result<Ending> {
    let teller = theatre.teller;
    let catalog = catalog()?;
    let broken = ORDER
        .replace("tool: inventory.reserve\n", "tool: inventory.reserv\n")
        .replace("depends_on: [charge]", "depends_on: [chrage]")
        .replace("steps.ship.result.tracking", "steps.ship.result.traking");
    let document = Document::read(broken.as_bytes(), Format::Yaml).map_err(|_| anyhow!("not a document"))?;
    let checked = read_and_check(broken.as_bytes(), Format::Yaml, &catalog, Driver::Server, None);
    let subject = Subject::new("order.yaml", &broken, Some(&document.spans));
    for found in &checked.diagnostics {
        teller.text(&subject.render_to(found, WIDTH))?;
    }
    let found = count(&checked.diagnostics).unwrap_or_default();
    teller.say(&format!("{found}; nothing was started. The same plan without them:\n"))?;

    let plan = compile(ORDER, &catalog)?;
    let preview = preview(&plan);
    let heading = ["", "STEP", "EFFECT", "", "UNDO"].map(|name| Cell::new(name, Paint::Dim));
    let mut rows = vec![heading.to_vec()];
    for step in &preview.steps {
        rows.push(vec![
            Cell::from(" "),
            Cell::new(step.step.as_str(), Paint::Bold),
            guarantee(step.guarantee.kind).into(),
            undo_sign(step.undo.coverage, theatre.terminal.signs),
            step.undo.reason.as_str().into(),
        ]);
    }
    teller.text(&columns(&rows).iter().map(|line| format!("{line}\n")).collect::<String>())?;
    let no_return = preview.point_of_no_return.as_ref().map(|point| point.step.as_str());
    teller.say(&format!("\nPoint of no return: {}", no_return.unwrap_or("none")))?;
    if let Some(step) = preview.steps.first() {
        let sentence = format!("If nobody knows whether {} happened: {}", step.step, step.guarantee.in_doubt);
        teller.say(&sentence)?;
    }

    let mut ending = Ending::new("3 mistakes told, nothing started; the plan without them is accepted");
    ending.check("three errors were found", checked.plan.is_none() && checked.diagnostics.len() == 3);
    ending.check("the point of no return is the charge", no_return == Some("charge"));
    Ok(ending)
}

fn undoing(theatre: &Theatre<'_>) -> anyhow::Result<Ending> {
    let catalog = catalog()?;
    let plan = compile(ORDER, &catalog)?;
    let mut tools = Tools::new(catalog);
    let refuse = |category, message: &str| Fault::Refuse(Failure::new(category, message));
    tools.fail_next("shipping.book", refuse(Category::Unavailable, "the carrier is busy"));
    tools.fail_next("shipping.book", refuse(Category::ToolError, "no pick-up at this address"));
    let mut stage = theatre.stage(ORDER_JOURNAL, (&plan, Driver::Server), order(129), tools)?;
    stage.give(&person(), Input::Start)?;
    stage.play()?;
    stage.approve("the amount is right")?;
    stage.play()?;

    let mut ending = Ending::new("the execution ended compensated: money back, then goods; no mail");
    ending.check("it ended compensated", stage.execution.status() == Status::Compensated);
    let made: Vec<&str> = stage.tools.made().map(|(tool, _)| tool).collect();
    let expected = ["inventory.reserve", "payments.charge", "payments.refund", "inventory.release"];
    ending.check("refund first, then release, and nothing else", made == expected);
    let refund = stage.tools.made().find(|(tool, _)| *tool == "payments.refund");
    let refunded = refund.map(|(_, parameters)| &parameters["charge"]);
    ending.check("the refund is of the charge that was made", refunded == Some(&json!("charge-1")));
    ending.check("no mail was sent", stage.tools.effects_of("mail.send") == 0);
    ending.close(&mut stage)?;
    Ok(ending)
}

fn doubt(theatre: &Theatre<'_>) -> anyhow::Result<Ending> {
    let teller = theatre.teller;
    let catalog = catalog_without_keys()?;
    let plan = compile(ORDER, &catalog)?;
    let mut stage = theatre.lose_the_charge("3-with-probe", &plan, &catalog)?;
    stage.crash_and_recover()?;
    stage.play()?;
    let mut ending = Ending::new("one charge each time: a probe found the first, a person the second");
    ending.check("with a probe it completed", stage.execution.status() == Status::Completed);
    ending.check("one charge with a probe", stage.tools.effects_of("payments.charge") == 1);
    ending.close(&mut stage)?;

    teller.say("\nThe same, and the plan has no probe.\n")?;
    let probe =
        "    probe: { tool: payments.find, parameters: { key: \"{{ key }}\" }, happened: result.found }\n";
    let plan = compile(&ORDER.replace(probe, ""), &catalog)?;
    let mut stage = theatre.lose_the_charge("3-without-probe", &plan, &catalog)?;
    stage.crash_and_recover()?;
    stage.play()?;
    let waits = stage.execution.status() == Status::Waiting;
    let questions = stage.execution.questions();
    let asked = questions.iter().find_map(|ask| match ask {
        Ask::Doubt { part, reason, .. } => Some((part.clone(), reason.clone())),
        _ => None,
    });
    let (part, reason) = asked.context("nobody was asked")?;
    teller.note(&part.to_string(), format!("waits for a person: {reason}"))?;
    let settle = Input::Settle {
        part,
        happened: true,
        reason: "it is on the bank statement".to_owned(),
        result: Some(Arc::new(json!({ "id": "charge-1", "status": "paid" }))),
        evidence: Arc::new(json!({ "statement": "line 12" })),
    };
    let refusal = stage.offer(&agent(), settle.clone())?;
    theatre.tell_refusal(&agent(), "says that it happened", refusal.as_ref())?;
    stage.give(&person(), settle)?;
    stage.play()?;
    ending.check("without a probe it waited", waits);
    ending.check("an agent's word did not settle it", refusal.is_some());
    ending.check("then it completed", stage.execution.status() == Status::Completed);
    ending.check("one charge without a probe", stage.tools.effects_of("payments.charge") == 1);
    ending.close(&mut stage)?;
    Ok(ending)
}

fn approval(theatre: &Theatre<'_>) -> anyhow::Result<Ending> {
    let catalog = catalog()?;
    let plan = compile(ORDER, &catalog)?;
    // The cheaper order, which the operator looks at by mistake. Its call has another hash.
    let silent = Teller::silent(*theatre.terminal);
    let beside = Theatre { teller: &silent, book: theatre.book.clone(), ..*theatre };
    let tools = Tools::new(catalog.clone());
    let mut cheap = beside.stage("4-cheap", (&plan, Driver::Server), order(129), tools)?;
    cheap.give(&person(), Input::Start)?;
    cheap.play()?;
    let (_, seen) = cheap.asked()?;

    let mut stage = theatre.stage("4-order", (&plan, Driver::Server), order(1290), Tools::new(catalog))?;
    stage.give(&person(), Input::Start)?;
    stage.play()?;
    let (part, asked) = stage.asked()?;
    let yes = |call| Input::Approve { part: part.clone(), call, reason: "fine".to_owned() };
    let mut ending = Ending::new("two wrong approvals refused, the right one used once; completed");
    for (actor, call, code, told) in [
        (agent(), asked, "execution.not_a_person", "approves its own call"),
        (person(), seen, "execution.other_call", "approves the call of the other order"),
    ] {
        let refusal = stage.offer(&actor, yes(call))?;
        theatre.tell_refusal(&actor, told, refusal.as_ref())?;
        ending.check(&format!("refused with {code}"), refusal.is_some_and(|refusal| refusal.code == code));
    }
    ending.check("nothing was charged meanwhile", stage.tools.effects_of("payments.charge") == 0);
    stage.give(&person(), yes(asked))?;
    stage.play()?;
    ending.check("it completed", stage.execution.status() == Status::Completed);
    ending.check("one charge", stage.tools.effects_of("payments.charge") == 1);
    ending.close(&mut cheap)?;
    ending.close(&mut stage)?;
    Ok(ending)
}

fn handing_over(theatre: &Theatre<'_>) -> anyhow::Result<Ending> {
    let teller = theatre.teller;
    let catalog = catalog()?;
    let plan = compile(OFF_BOARDING, &catalog)?;
    let inputs = json!({ "user": "u-1042", "successor": "u-2077" });
    let mut stage = theatre.stage("5-off-boarding", (&plan, Driver::Agent), inputs, Tools::new(catalog))?;
    stage.agent_does("login", "identity.disable_login", json!({ "user": "u-1042" }))?;
    stage.agent_calls("login", "identity.disable_login", &json!({ "user": "u-1042" }))?;
    teller.note("login", "was called again all the same; this tool drops repeats")?;
    stage.agent_does("licence_chat", "licences.release", json!({ "user": "u-1042", "product": "chat" }))?;
    teller.say("\nThe agent is gone. All that whoever takes over has to read:\n")?;
    for line in stage.execution.brief().lines() {
        let line = wrapped_to(&format!("  | {line}"), 6, WIDTH).replace("\n    ", "\n  | ");
        teller.text(&format!("{}\n", Paint::Dim.on(&line)))?;
    }
    teller.text("\n")?;
    let reason = "the agent is gone".to_owned();
    stage.give(&person(), Input::HandOver { to: Driver::Server, reason })?;
    stage.play()?;

    let mut ending = Ending::new("the execution ended completed: 2 steps by the agent, 10 by Rutter");
    let kinds: Vec<String> =
        stage.execution.deviations().iter().map(|(kind, ..)| format!("{kind:?}")).collect();
    ending.check("the repeat and the gap were noticed", kinds == ["Duplicate", "Skipped"]);
    ending.check("it completed", stage.execution.status() == Status::Completed);
    let effects: u64 = stage.tools.effects().values().sum();
    ending.check("twelve steps, twelve effects", effects == 12);
    ending.close(&mut stage)?;
    Ok(ending)
}

fn tampering(theatre: &Theatre<'_>) -> anyhow::Result<Ending> {
    let teller = theatre.teller;
    theatre.book.close();
    let mut archive = Archive::open(theatre.folder)?;
    let keys: Vec<_> = archive.public_key()?.into_iter().collect();
    let trust = || Trust { keys: keys.clone(), ..Trust::default() };
    let checked = archive.verify(&tenant(), trust(), true, &mut |_| {})?;
    teller.say(&format!("The database of all scenes: {}.", checked.verdict))?;

    let mut text = String::new();
    let order = identity(ORDER_JOURNAL).execution;
    archive.export(&tenant(), Some(&[order]), &mut |line| {
        line.write(&mut text).map_err(|error| Error::Io(error.to_string()))
    })?;
    fs::write(theatre.folder.join(ORDER_EXPORT), &text)?;
    let mut bytes = text.into_bytes();
    let amount = br#"\"amount\":129"#;
    let at = bytes.windows(amount.len()).rposition(|window| window == amount);
    let at = at.context("the amount is not in the journal")? + amount.len() - 1;
    bytes[at] ^= 1;
    fs::write(theatre.folder.join(ALTERED_EXPORT), &bytes)?;
    teller.say(
        "\nThe journal of scene 2 is exported, and one bit of the copy is flipped: the charge of 129 EUR \
         becomes one of 128 EUR.",
    )?;
    let found =
        verify_export(bytes.strip_suffix(b"\n").unwrap_or(&bytes).split(|byte| *byte == b'\n'), trust());
    teller.say(&format!("Verified again: {found}."))?;

    // Two lines come before the first entry: the header and the checkpoint.
    let lines_before = bytes[..at].iter().filter(|byte| **byte == b'\n').count() as u64;
    let named = found.fault.as_ref().and_then(|fault| fault.entry.as_ref()).map(|(_, seq)| *seq);
    let mut ending = Ending::new("the flipped bit was found and its entry named");
    ending.check("the database is intact", checked.is_clean() && checked.verdict.unprotected() == 0);
    ending.check("it is signed by the key beside it", checked.verdict.assurance == Assurance::Signed);
    ending.check("the first bad entry is named", named == Some(lines_before - 1));
    Ok(ending)
}

impl<'a> Theatre<'a> {
    fn stage(
        &self,
        name: &str,
        plan: (&Arc<Plan>, Driver),
        inputs: Value,
        tools: Tools,
    ) -> anyhow::Result<Stage<'a>> {
        Stage::open(self.teller, (&self.book, name), plan, inputs, tools)
    }

    /// An order up to the charge, which takes effect while the process dies.
    fn lose_the_charge(
        &self,
        name: &str,
        plan: &Arc<Plan>,
        catalog: &ToolCatalog,
    ) -> anyhow::Result<Stage<'a>> {
        let mut tools = Tools::new(catalog.clone());
        tools.fail_next("payments.charge", Fault::LoseAnswer);
        let mut stage = self.stage(name, (plan, Driver::Server), order(129), tools)?;
        stage.give(&person(), Input::Start)?;
        stage.play()?;
        stage.approve("the amount is right")?;
        if stage.play()? != Played::AnswerLost {
            bail!("the charge was answered");
        }
        let entries = stage.journal.entries();
        let words = format!("the process dies; a new one has only the database, with {entries} entries");
        self.teller.note("charge", words)?;
        Ok(stage)
    }

    fn tell_refusal(&self, actor: &Actor, told: &str, refusal: Option<&Refusal>) -> anyhow::Result<()> {
        let words = match refusal {
            Some(refusal) => format!("{actor} {told}; refused: {refusal} ({})", refusal.code),
            None => format!("{actor} {told}; it was let through"),
        };
        self.teller.progress(&Progress { sign: Sign::Failed, who: "charge".to_owned(), words })?;
        Ok(())
    }
}

impl Stage<'_> {
    /// The agent calls the tool itself, and says how that ended.
    fn agent_does(&mut self, step: &str, tool: &str, parameters: Value) -> anyhow::Result<()> {
        let Some(Outcome::Done { result, .. }) = self.agent_calls(step, tool, &parameters)? else {
            bail!("{tool} did not answer the agent");
        };
        let part = PartId::whole(StepId::new(step));
        self.give(&agent(), Input::RecordFinished { part, result })
    }

    /// The agent says what it begins, and calls the tool.
    fn agent_calls(&mut self, step: &str, tool: &str, parameters: &Value) -> anyhow::Result<Option<Outcome>> {
        let tool = ToolName::new(tool);
        let started = Input::RecordStarted {
            part: PartId::whole(StepId::new(step)),
            tool: Some(tool.clone()),
            parameters: Some(Arc::new(parameters.clone())),
        };
        self.give(&agent(), started)?;
        Ok(self.tools.call(&tool, parameters))
    }
}

fn order(amount: u32) -> Value {
    json!({ "order": "4711", "sku": "compass", "amount": amount, "email": "customer@example.com" })
}

fn compile(text: &str, catalog: &ToolCatalog) -> anyhow::Result<Arc<Plan>> {
    let checked = read_and_check(text.as_bytes(), Format::Yaml, catalog, Driver::Server, None);
    checked.plan.with_context(|| format!("the demo's own plan has mistakes: {:?}", checked.diagnostics))
}

fn catalog() -> anyhow::Result<ToolCatalog> {
    read_catalog(&serde_json::from_str(TOOLS)?)
}

/// The same tools, but nobody says that the payment service drops repeats by their key.
fn catalog_without_keys() -> anyhow::Result<ToolCatalog> {
    let mut tools: Value = serde_json::from_str(TOOLS)?;
    for tool in tools["tools"].as_array_mut().into_iter().flatten() {
        if tool["name"] == "payments.charge" {
            tool.as_object_mut().and_then(|tool| tool.remove("key_parameter"));
        }
    }
    read_catalog(&tools)
}

fn read_catalog(tools: &Value) -> anyhow::Result<ToolCatalog> {
    ToolCatalog::from_json(tools).map_err(|found| anyhow!("the demo's own tools have mistakes: {found:?}"))
}
