//! Writes the sample database: six executions, each with another outcome, and two exports.

mod journal;
mod play;
mod tools;

use journal::{Book, identity, tenant};
use play::{Play, Played, agent, person};
use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::view::{ExecutionStatus, PendingQuestion};
use rutter_core::journal::export::ExportLine;
use rutter_core::plan::check::read_and_check;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::{Driver, Plan};
use rutter_core::port::Error;
use rutter_core::tool::{FailureCategory, ToolCatalog, ToolFailure};
use rutter_store::SqliteArchive;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use tools::{Fault, Tools};

const ORDER: &str = include_str!("../../../../../examples/order.yaml");
const OFF_BOARDING: &str = include_str!("../../../../../examples/off-boarding.yaml");
const TOOLS: &str = include_str!("../../../../../examples/tools.json");

pub fn write(directory: &Path) {
    let book = Book::open(directory);
    an_order_is_undone(&book);
    two_charges_are_in_doubt(&book);
    one_of_two_orders_is_approved(&book);
    an_agent_hands_over(&book);
    book.close();
    export(directory);
}

fn an_order_is_undone(book: &Rc<Book>) {
    let catalog = catalog();
    let plan = compile(ORDER, &catalog);
    let mut tools = Tools::new(catalog);
    let refuse = |category, message: &str| Fault::Refuse(ToolFailure::new(category, message));
    tools.fail_next("shipping.book", refuse(FailureCategory::Unavailable, "the carrier is busy"));
    tools.fail_next("shipping.book", refuse(FailureCategory::ToolError, "no pick-up at this address"));
    let mut play = Play::open((book, "2-order"), (&plan, Driver::Server), order(129), tools);
    play.give(&person(), ExecutionInput::Start);
    play.play();
    play.approve("the amount is right");
    play.play();
    assert_eq!(play.execution.status(), ExecutionStatus::Compensated);
    play.journal.sign();
}

/// A probe settles one, and a person the other.
fn two_charges_are_in_doubt(book: &Rc<Book>) {
    let catalog = catalog_without_keys();
    let plan = compile(ORDER, &catalog);
    let mut play = lose_the_charge((book, "3-with-probe"), &plan, &catalog);
    play.crash_and_recover();
    play.play();
    assert_eq!(play.execution.status(), ExecutionStatus::Completed);
    play.journal.sign();

    let probe = "    probe: { tool: payments.find, parameters: { key: \"{{ key }}\" }, happened: result.found }\n";
    assert!(ORDER.contains(probe));
    let plan = compile(&ORDER.replace(probe, ""), &catalog);
    let mut play = lose_the_charge((book, "3-without-probe"), &plan, &catalog);
    play.crash_and_recover();
    play.play();
    let asked = play.execution.questions().into_iter().find_map(|ask| match ask {
        PendingQuestion::Doubt { part, .. } => Some(part),
        _ => None,
    });
    let settle = ExecutionInput::Settle {
        part: asked.expect("a person is asked"),
        happened: true,
        reason: "it is on the bank statement".to_owned(),
        result: Some(Arc::new(json!({ "id": "charge-1", "status": "paid" }))),
        evidence: Arc::new(json!({ "statement": "line 12" })),
    };
    assert!(play.offer(&agent(), settle.clone()).is_some());
    play.give(&person(), settle);
    play.play();
    assert_eq!(play.execution.status(), ExecutionStatus::Completed);
    play.journal.sign();
}

/// An order up to the charge, which takes effect while the process dies.
fn lose_the_charge(named: (&Rc<Book>, &str), plan: &Arc<Plan>, catalog: &ToolCatalog) -> Play {
    let mut tools = Tools::new(catalog.clone());
    tools.fail_next("payments.charge", Fault::LoseAnswer);
    let mut play = Play::open(named, (plan, Driver::Server), order(129), tools);
    play.give(&person(), ExecutionInput::Start);
    play.play();
    play.approve("the amount is right");
    assert_eq!(play.play(), Played::AnswerLost);
    play
}

/// The cheaper order keeps waiting.
fn one_of_two_orders_is_approved(book: &Rc<Book>) {
    let catalog = catalog();
    let plan = compile(ORDER, &catalog);
    let tools = || Tools::new(catalog.clone());
    let mut cheap = Play::open((book, "4-cheap"), (&plan, Driver::Server), order(129), tools());
    cheap.give(&person(), ExecutionInput::Start);
    cheap.play();
    let (_, seen) = cheap.asked();
    let mut play = Play::open((book, "4-order"), (&plan, Driver::Server), order(1290), tools());
    play.give(&person(), ExecutionInput::Start);
    play.play();
    let (part, asked) = play.asked();
    let yes = |call| ExecutionInput::Approve { part: part.clone(), call, reason: "fine".to_owned() };
    assert_eq!(play.offer(&agent(), yes(asked)).as_deref(), Some("execution.not_a_person"));
    assert_eq!(play.offer(&person(), yes(seen)).as_deref(), Some("execution.other_call"));
    play.give(&person(), yes(asked));
    play.play();
    assert_eq!(play.execution.status(), ExecutionStatus::Completed);
    cheap.journal.sign();
    play.journal.sign();
}

fn an_agent_hands_over(book: &Rc<Book>) {
    let catalog = catalog();
    let plan = compile(OFF_BOARDING, &catalog);
    let inputs = json!({ "user": "u-1042", "successor": "u-2077" });
    let named = (book, "5-off-boarding");
    let mut play = Play::open(named, (&plan, Driver::Agent), inputs, Tools::new(catalog));
    let user = json!({ "user": "u-1042" });
    play.agent_does("login", "identity.disable_login", &user);
    play.agent_calls("login", "identity.disable_login", &user);
    play.agent_does("licence_chat", "licences.release", &json!({ "user": "u-1042", "product": "chat" }));
    let reason = "the agent is gone".to_owned();
    play.give(&person(), ExecutionInput::HandOver { to: Driver::Server, reason });
    play.play();
    assert_eq!(play.execution.status(), ExecutionStatus::Completed);
    play.journal.sign();
}

/// The first journal as an export, and a copy with one bit flipped.
fn export(directory: &Path) {
    let mut archive = SqliteArchive::open(directory).unwrap();
    let mut text = String::new();
    let write = &mut |line: ExportLine| line.write(&mut text).map_err(|error| Error::Io(error.to_string()));
    archive.export(&tenant(), Some(&[identity("2-order").execution]), write).unwrap();
    fs::write(directory.join("6-order.ndjson"), &text).unwrap();
    let mut bytes = text.into_bytes();
    let amount = br#"\"amount\":129"#;
    let at = bytes.windows(amount.len()).rposition(|window| window == amount).unwrap();
    bytes[at + amount.len() - 1] ^= 1;
    fs::write(directory.join("6-altered.ndjson"), &bytes).unwrap();
}

fn order(amount: u32) -> Value {
    json!({ "order": "4711", "sku": "compass", "amount": amount, "email": "customer@example.com" })
}

fn compile(text: &str, catalog: &ToolCatalog) -> Arc<Plan> {
    let checked = read_and_check(text.as_bytes(), DocumentFormat::Yaml, catalog, Driver::Server, None);
    checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

fn catalog() -> ToolCatalog {
    ToolCatalog::from_json(&serde_json::from_str(TOOLS).unwrap()).unwrap()
}

/// The same tools, but the payment service does not declare that it drops repeats by their key.
fn catalog_without_keys() -> ToolCatalog {
    let mut tools: Value = serde_json::from_str(TOOLS).unwrap();
    let listed = tools["tools"].as_array_mut().unwrap().iter_mut();
    for tool in listed.filter(|tool| tool["name"] == "payments.charge") {
        tool.as_object_mut().unwrap().remove("key_parameter");
    }
    ToolCatalog::from_json(&tools).unwrap()
}
