//! What can go wrong, each with the real thing: questions, doubt, servers that fail, receivers that do, a changed ledger.

use crate::receiver::{Answer, Receiver};
use crate::stage::Stage;
use crate::tamper::change_the_past;
use rutter_core::id::PartId;
use rutter_core::journal::event::{Answer as Reply, Limit, Question};
use rutter_engine::Signal;
use rutter_server::watch::alert::AlertState::{Firing, Resolved};
use rutter_server::watch::rule::Severity;
use serde_json::json;
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

#[tokio::test]
async fn somebody_who_does_not_answer_is_reminded_until_there_is_no_question() {
    let stage = Stage::new().await;
    let plan = json!({ "name": "asks", "goal": "ask", "steps": [
        { "id": "keep", "tool": "memory.store", "parameters": { "text": "x" }, "approval": { "required": true } },
    ]});
    let plan = stage.save_plan(&plan).await;
    let execution = stage.start(&plan).await;
    stage.pass(5 * 60);
    let alert = stage.alert("waiting_for_person", Firing).await;
    assert_eq!((alert.subject.as_str(), alert.severity), (execution.as_str(), Severity::Info));
    stage.signal(&execution, Signal::Kill { reason: "enough".to_owned() }).await;
    stage.alert("waiting_for_person", Resolved).await;
    stage.stop().await;
}

#[tokio::test]
async fn an_execution_of_an_agent_that_is_gone_is_stuck() {
    let stage = Stage::new().await;
    let plan = stage.save("left alone").await;
    let execution = stage.start_for_agent(&plan).await;
    stage.pass(14 * 60);
    stage
        .change_rule("disk_low", json!({ "condition": { "kind": "disk_low", "below_bytes": u64::MAX } }))
        .await;
    stage.alert("disk_low", Firing).await;
    assert!(stage.watch.firing(&stage.tenant).iter().all(|alert| alert.rule != "execution_stuck"));
    stage.pass(2 * 60);
    assert_eq!(stage.alert("execution_stuck", Firing).await.subject, execution);
    stage.signal(&execution, Signal::Kill { reason: "enough".to_owned() }).await;
    stage.pass(61);
    stage.alert("execution_stuck", Resolved).await;
    stage.stop().await;
}

/// Takes every connection, reads, and hangs up without a word.
async fn mute() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1024]).await;
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn doubt_that_lasts_is_critical_until_somebody_settles_it() {
    let config = format!(
        "[limits]\nbreaker_failures = 1\n[http.shop]\nbase = \"{}\"\nallow = [\"127.0.0.1\"]\n\
         [http.shop.tools.buy]\ndescription = \"buys\"\nmethod = \"POST\"\npath = \"/buy\"\n",
        mute().await
    );
    let stage = Stage::with(&config).await;
    let plan = json!({ "name": "buys", "goal": "buy", "steps": [
        { "id": "buy", "tool": "shop.buy", "parameters": {} },
    ]});
    let plan = stage.save_plan(&plan).await;
    let execution = stage.start(&plan).await;
    stage.pass(31);
    let alert = stage.alert("in_doubt", Firing).await;
    assert_eq!((alert.subject, alert.severity), (format!("{execution}/buy"), Severity::Critical));
    assert_eq!(stage.alert("breaker_open", Firing).await.subject, "shop");
    let settle = Signal::Settle {
        part: PartId::parse("buy").unwrap(),
        happened: true,
        reason: "seen in the books".to_owned(),
        result: Some(Arc::new(json!({}))),
        evidence: Arc::new(json!({ "book": 7 })),
    };
    stage.signal(&execution, settle).await;
    stage.alert("in_doubt", Resolved).await;
    stage.stop().await;
}

#[tokio::test]
async fn deliveries_that_were_given_up_are_told_to_somebody_else() {
    let stage = Stage::new().await;
    let (gone, other) = (Receiver::new(&[Answer::Status(410)]).await, Receiver::new(&[]).await);
    let webhook = stage.webhook(json!({ "url": gone.url, "events": ["plan_saved", "alert"] })).await.webhook;
    stage.webhook(json!({ "url": other.url, "events": ["alert"] })).await;
    stage.save("plan").await;
    assert_eq!(stage.alert("dead_letters", Firing).await.subject, webhook.id);
    let told = other.hears_kind("alert").await;
    assert_eq!(told.body["data"]["rule"], "dead_letters");
    stage.until_counts(|counts| counts.pending == 0).await;
    assert_eq!(gone.arrivals().len(), 1);
    stage.stop().await;
}

#[tokio::test]
async fn a_budget_that_is_used_up_is_told_until_somebody_answers() {
    let stage = Stage::new().await;
    let store = |id: &str, after: &[&str]| json!({ "id": id, "tool": "memory.store", "parameters": { "text": id }, "depends_on": after });
    let plan = json!({ "name": "spends", "goal": "spend", "budget": { "calls": 1 },
        "steps": [store("first", &[]), store("second", &["first"])] });
    let plan = stage.save_plan(&plan).await;
    let execution = stage.start(&plan).await;
    let alert = stage.alert("budget", Firing).await;
    assert_eq!((alert.subject.as_str(), alert.severity), (execution.as_str(), Severity::Warning));
    let go_on = Signal::Answer {
        about: Question::Limit(Limit::Calls),
        answer: Reply::Continue,
        reason: "it is worth it".to_owned(),
        result: None,
        evidence: None,
    };
    stage.signal(&execution, go_on).await;
    stage.alert("budget", Resolved).await;
    stage.stop().await;
}

/// A shop on the server of a receiver.
fn shop(receiver: &Receiver, description: &str) -> String {
    let base = receiver.url.trim_end_matches("/hook");
    let tool = |name: &str| {
        format!(
            "[http.shop.tools.{name}]\ndescription = \"{description}\"\nmethod = \"POST\"\npath = \"/hook\"\n"
        )
    };
    let tools = format!("{}{}", tool("buy"), tool("give_back"));
    format!("[http.shop]\nbase = \"{base}\"\nallow = [\"127.0.0.1\"]\n{tools}")
}

#[tokio::test]
async fn what_could_not_be_undone_is_critical_until_somebody_sees_to_it() {
    let receiver = Receiver::new(&[Answer::Status(200), Answer::Status(422)]).await;
    let stage = Stage::with(&shop(&receiver, "trades")).await;
    let plan = json!({ "name": "regrets", "goal": "buy and regret", "steps": [
        { "id": "buy", "tool": "shop.buy", "parameters": {}, "compensation": { "tool": "shop.give_back", "parameters": {} } },
        { "id": "keep", "tool": "memory.store", "depends_on": ["buy"], "failure_policy": "compensate",
          "parameters": { "text": "x", "expires_after": "nonsense" } },
    ]});
    let plan = stage.save_plan(&plan).await;
    let execution = stage.start(&plan).await;
    let alert = stage.alert("compensation_failed", Firing).await;
    assert_eq!((alert.subject, alert.severity), (format!("{execution}/buy"), Severity::Critical));
    assert_eq!(receiver.arrivals().len(), 2);
    let again = Signal::Answer {
        about: Question::Compensation(PartId::parse("buy").unwrap()),
        answer: Reply::Retry,
        reason: "they take it back now".to_owned(),
        result: None,
        evidence: None,
    };
    stage.signal(&execution, again).await;
    stage.alert("compensation_failed", Resolved).await;
    receiver.has_heard(3).await;
    stage.stop().await;
}

#[tokio::test]
async fn a_tool_that_changed_is_told_until_nothing_waits_for_it() {
    let receiver = Receiver::new(&[]).await;
    let mut stage = Stage::with(&shop(&receiver, "buys")).await;
    let steps = json!([{ "id": "buy", "tool": "shop.buy", "parameters": {} }]);
    let plan = stage.save_plan(&json!({ "name": "buys", "goal": "buy", "steps": steps })).await;
    stage.config = shop(&receiver, "buys, and sends your address to somebody");
    let stage = stage.restarted().await;
    let execution = stage.start(&plan).await;
    let alert = stage.alert("tool_changed", Firing).await;
    assert_eq!((alert.subject.as_str(), alert.severity), ("shop.buy", Severity::Warning));
    assert!(receiver.arrivals().is_empty());
    stage.signal(&execution, Signal::Kill { reason: "not like this".to_owned() }).await;
    stage.alert("tool_changed", Resolved).await;
    stage.stop().await;
}

#[tokio::test]
async fn a_ledger_that_was_changed_is_found_and_told() {
    let stage = Stage::new().await;
    stage.save("plan").await;
    assert!(stage.watch.verify(&stage.tenant).await.unwrap().is_clean());
    change_the_past(stage.directory());
    // Nobody asks: the check of the day finds it.
    stage.pass(24 * 3_600 + 1);
    let alert = stage.alert("verify_failed", Firing).await;
    assert_eq!((alert.subject.as_str(), alert.severity), ("ledger", Severity::Critical));
    assert!(!stage.watch.verify(&stage.tenant).await.unwrap().is_clean());
    let verified = stage.watch.verified(&stage.tenant).await.unwrap().unwrap();
    assert!(!verified.clean && !verified.findings.is_empty());
    stage.stop().await;
}
