//! Invalid messages, over stdio and over HTTP, in both eras: each gets the right response, nothing hangs, and the same
//! process still works afterwards.
#![cfg(target_os = "linux")]

mod crowd;
mod expected;
mod http;
mod messages;
mod tally;
mod tools;
pub mod wire;

use crate::clients::fixture::ClientFixture;
use expected::{Due, due};
use messages::Case;
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};
use tally::Tally;
use wire::{Era, Line, PATIENCE, Pipes, Reply};

const SEED: u64 = 20_261_116;

#[test]
fn whatever_the_older_era_sends_over_pipes_is_answered() {
    over_pipes(Era::Legacy);
}

#[test]
fn whatever_the_newer_era_sends_over_pipes_is_answered() {
    over_pipes(Era::Modern);
}

#[test]
fn whatever_the_older_era_sends_over_http_is_answered() {
    over_http(Era::Legacy);
}

#[test]
fn whatever_the_newer_era_sends_over_http_is_answered() {
    over_http(Era::Modern);
}

#[test]
fn requests_that_are_wrong_as_http_are_refused_or_closed() {
    let mut fixture = ClientFixture::new();
    let mut line = Line::open(&mut fixture);
    let pid = fixture.pid();
    line.begin();
    let mut tally = Tally::default();
    for odd in http::all(&line) {
        tally.count(odd.category, &http::outcome(&line, &odd));
    }
    println!("HTTP itself, {} requests\n{tally}", tally.total());
    for era in Era::ALL {
        let answer = line.ask(era, json!("still"), "tools/call", load(&format!("{era:?}")));
        assert_eq!(answer["result"]["structuredContent"]["status"], "completed", "{answer}");
    }
    ends_well(fixture, &pid, 2);
}

#[test]
fn a_client_that_begins_with_errors_can_still_initialize() {
    for era in Era::ALL {
        let fixture = ClientFixture::new();
        let mut pipes = Pipes::open(&fixture);
        // None of this ends the connection.
        let offered = [json!({ "name": "status", "inputSchema": {} })];
        let cases = messages::all(era, &offered, SEED).into_iter();
        for case in cases.filter(|case| matches!(case.category, "notices" | "batch" | "method" | "id" | "bytes")) {
            judge_over_pipes(&mut pipes, &case);
        }
        let pid = fixture.pid();
        pipes.begin(era);
        let answer = pipes.ask(era, json!("still"), "tools/call", load("late"));
        assert_eq!(answer["result"]["structuredContent"]["status"], "completed", "{answer}");
        drop(pipes);
        ends_well(fixture, &pid, 1);
    }
}

fn over_pipes(era: Era) {
    let fixture = ClientFixture::new();
    let mut pipes = Pipes::open(&fixture);
    pipes.begin(era);
    let listed = pipes.ask(era, json!("tools"), "tools/list", json!({}));
    let pid = fixture.pid();
    let mut tally = Tally::default();
    for case in messages::all(era, listed["result"]["tools"].as_array().unwrap(), SEED) {
        tally.count(case.category, &judge_over_pipes(&mut pipes, &case));
    }
    println!("pipes, {era:?}, {} messages\n{tally}", tally.total());
    assert_eq!(tally.total(), messages::COUNT);
    // Two requests under one id are two requests, whether the second is sent before or after the first response.
    let twice = era.request(json!("twice"), "tools/list", json!({})).to_string();
    for _ in 0..20 {
        pipes.send(format!("{twice}\n{twice}").as_bytes());
        pipes.answer(&json!("twice"));
        pipes.answer(&json!("twice"));
    }
    let answer = pipes.ask(era, json!("still"), "tools/call", load("last"));
    assert_eq!(answer["result"]["structuredContent"]["status"], "completed", "{answer}");
    let late = pipes.hear(Instant::now() + Duration::from_millis(300));
    assert!(late.as_ref().is_none_or(|late| late.get("id").is_none()), "an unexpected response: {late:?}");
    drop(pipes);
    ends_well(fixture, &pid, 1);
}

fn over_http(era: Era) {
    let mut fixture = ClientFixture::new();
    let mut line = Line::open(&mut fixture);
    let pid = fixture.pid();
    if era == Era::Legacy {
        line.begin();
    }
    let listed = line.ask(era, json!("tools"), "tools/list", json!({}));
    let mut tally = Tally::default();
    for case in messages::all(era, listed["result"]["tools"].as_array().unwrap(), SEED) {
        let reply = line.post(era, &case.bytes);
        let reply = reply.unwrap_or_else(|| panic!("closed without an answer: {}", case.text()));
        tally.count(case.category, &judge_over_http(&case, &reply));
    }
    println!("HTTP, {era:?}, {} messages\n{tally}", tally.total());
    assert_eq!(tally.total(), messages::COUNT);
    // Two concurrent requests under one id are two requests.
    for _ in 0..20 {
        let ask = || line.ask(era, json!("twice"), "tools/list", json!({}));
        thread::scope(|scope| [scope.spawn(ask), scope.spawn(ask)].map(|asked| asked.join().unwrap()));
    }
    let answer = line.ask(era, json!("still"), "tools/call", load("last"));
    assert_eq!(answer["result"]["structuredContent"]["status"], "completed", "{answer}");
    ends_well(fixture, &pid, 1);
}

fn load(name: &str) -> Value {
    let plan = json!({ "name": name, "goal": "a crate is loaded", "steps": [{ "id": "only", "tool": "dock.load", "parameters": { "crate": name } }] });
    json!({ "name": "execute_plan", "arguments": { "plan": plan, "wait_seconds": 45 } })
}

/// The same process still runs, and has done what was requested, once.
fn ends_well(fixture: ClientFixture, pid: &str, loads: usize) {
    assert_eq!(fixture.pid(), pid, "it is another process");
    assert_eq!(fixture.count("effect", "load"), loads);
    fixture.close();
}

/// Sends a case and waits for the expected response; any other response with an id is an error.
fn judge_over_pipes(pipes: &mut Pipes, case: &Case) -> String {
    pipes.send(&case.bytes);
    let due = due(&case.bytes);
    let fence = json!("fence");
    if due == Due::Silence {
        // A second request, whose response marks the end; nothing else may come in between.
        pipes.send(json!({ "jsonrpc": "2.0", "id": fence, "method": "no/such" }).to_string().as_bytes());
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let Some(message) = pipes.hear(deadline) else { panic!("{due:?} is due for {}", case.text()) };
        if message.get("id").is_none() {
            continue;
        }
        let is_due = match &due {
            Due::Named(id) => message["id"] == *id,
            Due::Nameless => message["id"].is_null() && message.get("error").is_some(),
            Due::Silence => message["id"] == fence,
        };
        assert!(is_due, "{due:?} is due for {}, not {message}", case.text());
        return if due == Due::Silence { "none".to_owned() } else { outcome(case, &message) };
    }
}

fn judge_over_http(case: &Case, reply: &Reply) -> String {
    assert!(reply.status < 500, "{reply:?} to {}", case.text());
    let due = due(&case.bytes);
    let messages: Vec<Value> = reply.messages().into_iter().filter(|message| message.get("id").is_some()).collect();
    if (400..500).contains(&reply.status) {
        // If it is a message at all, it names the request.
        if let (Due::Named(id), [message]) = (&due, messages.as_slice()) {
            assert!(message["id"] == *id || message["id"].is_null(), "{reply:?} to {}", case.text());
        }
        return messages.first().map_or("4xx".to_owned(), |message| outcome(case, message));
    }
    match (&due, messages.as_slice()) {
        (Due::Named(id), [message]) if message["id"] == *id => outcome(case, message),
        (Due::Silence, []) if reply.status == 202 => "none".to_owned(),
        _ => panic!("{due:?} is due for {}, not {reply:?}", case.text()),
    }
}

fn outcome(case: &Case, message: &Value) -> String {
    if let Some(error) = message.get("error") {
        let code = error["code"].as_i64().unwrap_or_else(|| panic!("an error has a code: {message}"));
        assert!(error["message"].is_string(), "an error has a message: {message}");
        assert_ne!(code, -32603, "an internal error for {}: {message}", case.text());
        return code.to_string();
    }
    let result = message.get("result").unwrap_or_else(|| panic!("{message} is not a response"));
    if result["isError"] == true {
        return "isError".to_owned();
    }
    assert!(
        !case.must_fail,
        "{} succeeded: {}",
        case.text(),
        &message.to_string()[..300.min(message.to_string().len())]
    );
    "ok".to_owned()
}
