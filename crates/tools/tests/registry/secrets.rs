//! Secrets go to the server, and come back from nowhere.

use crate::stage::{CANARY, Heard, Puppet, Stage, call, done, served};
use rutter_core::id::ToolName;
use rutter_core::port::tools::{Berth, Elicitation, Progress, Return, Tools};
use rutter_core::tool::{Category, Failure, Outcome};
use rutter_tools::connector::{Served, State};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

fn login() -> Served {
    served(
        "login",
        json!({"inputSchema": {"type": "object", "properties": {"token": {"type": "string", "minLength": 8}}}}),
    )
}

fn parameters() -> Value {
    json!({"token": {"secret": "token"}})
}

#[tokio::test]
async fn the_schema_is_asked_about_the_secret_and_not_about_the_reference() {
    let puppet = Puppet::new(vec![login()]);
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let log = Arc::clone(&seen);
    puppet.on_call(move |request| {
        log.lock().unwrap().push(Value::clone(&request.parameters));
        async { done(json!({})) }
    });
    let stage = Stage::new(&[("s", &puppet)]);
    assert_eq!(stage.call("s.login", parameters()).await, done(json!({})));
    assert_eq!(*seen.lock().unwrap(), [json!({"token": CANARY})]);
}

#[tokio::test]
async fn a_secret_that_is_not_there_stops_the_call_before_it_is_sent() {
    let puppet = Puppet::new(vec![login()]);
    let stage = Stage::new(&[("s", &puppet)]);
    let outcome = stage.call("s.login", json!({"token": {"secret": "tokan"}})).await;
    let missing = Failure::new(Category::InvalidInput, "there is no secret \"tokan\"");
    assert_eq!(outcome, Outcome::NotDone(missing));
    assert_eq!(puppet.calls(), 0);
}

#[tokio::test]
async fn no_way_of_ending_lets_a_secret_out() {
    use base64::Engine;
    let puppet = Puppet::new(vec![login()]);
    let stage = Stage::new(&[("s", &puppet)]);
    let encoded = base64::prelude::BASE64_STANDARD.encode(CANARY);
    let said = format!("token {CANARY} also as {encoded}");
    let failure = |category| Failure::new(category, said.clone());
    let outcomes = [
        done(json!({"echo": said, CANARY: [said], "header": format!("Bearer {CANARY}")})),
        Outcome::NotDone(failure(Category::Unauthorized)),
        Outcome::Maybe(failure(Category::ToolError)),
        // Larger than what is looked through at once.
        done(json!({"echo": said, "filling": "x".repeat(1 << 20)})),
    ];
    for expected in outcomes {
        puppet.on_call(move |_| std::future::ready(expected.clone()));
        let outcome = format!("{:?}", stage.call("s.login", parameters()).await);
        assert!(!outcome.contains(CANARY) && !outcome.contains(&encoded), "{outcome}");
        assert!(outcome.contains("[redacted:token]"), "{outcome}");
    }
    *puppet.state.lock().unwrap() = State::Down { reason: said.clone(), stderr: vec![said.clone()] };
    let report = serde_json::to_string(&stage.registry.report()).unwrap();
    assert!(!report.contains(CANARY) && !report.contains(&encoded), "{report}");
}

#[tokio::test]
async fn what_a_tool_says_meanwhile_has_no_secrets_in_it_either() {
    let puppet = Puppet::new(vec![login()]);
    puppet.on_call(|request| async move {
        let said = format!("using {CANARY}");
        request.reporter.progress(Progress { done: 1.0, total: None, message: Some(said.clone()) });
        let schema = Arc::new(json!({"title": said}));
        let answer = request.reporter.ask(Elicitation { message: said, schema }).await;
        request.reporter.accepted("ticket 1".to_owned()).await;
        done(answer.unwrap())
    });
    let stage = Stage::new(&[("s", &puppet)]);
    stage.catalog().await;
    let definition = stage.registry.definition(&ToolName::new("s.login")).unwrap();
    let heard = Arc::new(Heard::default());
    let mut call = call("s.login", definition, parameters());
    call.reporter = Arc::<Heard>::clone(&heard);
    assert_eq!(stage.registry.call(call, Berth::free()).await, Return::Outcome(done(json!({"answer": 1}))));
    let heard = heard.0.lock().unwrap();
    assert_eq!(
        *heard,
        [
            "progress using [redacted:token]",
            "asked using [redacted:token] {\"title\":\"using [redacted:token]\"}",
            "accepted ticket 1",
        ]
    );
}

#[tokio::test]
async fn why_a_server_cannot_list_its_tools_is_told_without_secrets() {
    let puppet = Puppet::new(vec![login()]);
    let refused = Failure::new(Category::Unauthorized, format!("401 for Bearer {CANARY}"));
    *puppet.listing.lock().unwrap() = crate::stage::Listing::Fails(refused);
    let stage = Stage::new(&[("s", &puppet)]);
    let catalog = stage.catalog().await;
    let outcome = stage.registry.call_once(&ToolName::new("s.login"), json!({})).await;
    let told = format!("{:?} {outcome:?} {:?}", catalog.absent, stage.registry.report());
    assert!(told.contains("401") && !told.contains(CANARY), "{told}");
}
