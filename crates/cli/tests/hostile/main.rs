//! Messages that are wrong, over pipes and over HTTP, in both eras: each is answered as it deserves, nothing hangs, and
//! the same process still does its work afterwards.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]
#![cfg(target_os = "linux")]

mod crowd;
mod expected;
#[path = "../clients/harbour.rs"]
mod harbour;
mod http;
mod messages;
mod tally;
mod tools;
mod wire;

use expected::{Due, due};
use harbour::Harbour;
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
    let mut harbour = Harbour::new();
    let mut line = Line::open(&mut harbour);
    let pid = harbour.pid();
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
    ends_well(harbour, &pid, 2);
}

#[test]
fn a_client_that_begins_badly_is_let_in_when_it_begins_well() {
    for era in Era::ALL {
        let harbour = Harbour::new();
        let mut pipes = Pipes::open(&harbour);
        // Nothing of this makes the one conversation there is end.
        let offered = [json!({ "name": "status", "inputSchema": {} })];
        let cases = messages::all(era, &offered, SEED).into_iter();
        for case in
            cases.filter(|case| matches!(case.category, "notices" | "batch" | "method" | "id" | "bytes"))
        {
            judge_over_pipes(&mut pipes, &case);
        }
        let pid = harbour.pid();
        pipes.begin(era);
        let answer = pipes.ask(era, json!("still"), "tools/call", load("late"));
        assert_eq!(answer["result"]["structuredContent"]["status"], "completed", "{answer}");
        drop(pipes);
        ends_well(harbour, &pid, 1);
    }
}

fn over_pipes(era: Era) {
    let harbour = Harbour::new();
    let mut pipes = Pipes::open(&harbour);
    pipes.begin(era);
    let listed = pipes.ask(era, json!("tools"), "tools/list", json!({}));
    let pid = harbour.pid();
    let mut tally = Tally::default();
    for case in messages::all(era, listed["result"]["tools"].as_array().unwrap(), SEED) {
        tally.count(case.category, &judge_over_pipes(&mut pipes, &case));
    }
    println!("pipes, {era:?}, {} messages\n{tally}", tally.total());
    assert_eq!(tally.total(), messages::COUNT);
    // Two requests under one id are two requests, whether the second comes before the first is answered or after.
    let twice = era.request(json!("twice"), "tools/list", json!({})).to_string();
    for _ in 0..20 {
        pipes.send(format!("{twice}\n{twice}").as_bytes());
        pipes.answer(&json!("twice"));
        pipes.answer(&json!("twice"));
    }
    let answer = pipes.ask(era, json!("still"), "tools/call", load("last"));
    assert_eq!(answer["result"]["structuredContent"]["status"], "completed", "{answer}");
    let late = pipes.hear(Instant::now() + Duration::from_millis(300));
    assert!(late.as_ref().is_none_or(|late| late.get("id").is_none()), "an answer to nothing: {late:?}");
    drop(pipes);
    ends_well(harbour, &pid, 1);
}

fn over_http(era: Era) {
    let mut harbour = Harbour::new();
    let mut line = Line::open(&mut harbour);
    let pid = harbour.pid();
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
    // Two requests under one id at the same moment are two requests.
    for _ in 0..20 {
        let ask = || line.ask(era, json!("twice"), "tools/list", json!({}));
        thread::scope(|scope| [scope.spawn(ask), scope.spawn(ask)].map(|asked| asked.join().unwrap()));
    }
    let answer = line.ask(era, json!("still"), "tools/call", load("last"));
    assert_eq!(answer["result"]["structuredContent"]["status"], "completed", "{answer}");
    ends_well(harbour, &pid, 1);
}

fn load(name: &str) -> Value {
    let plan = json!({ "name": name, "goal": "a crate is loaded", "steps": [{ "id": "only", "tool": "dock.load", "parameters": { "crate": name } }] });
    json!({ "name": "execute_plan", "arguments": { "plan": plan, "wait_seconds": 45 } })
}

/// The same process is there as at the beginning, and has done what was asked, once.
fn ends_well(harbour: Harbour, pid: &str, loads: usize) {
    assert_eq!(harbour.pid(), pid, "it is another process");
    assert_eq!(harbour.count("effect", "load"), loads);
    harbour.close();
}

/// Sends one and waits for what is due; anything else with an id is an answer to nothing.
fn judge_over_pipes(pipes: &mut Pipes, case: &Case) -> String {
    pipes.send(&case.bytes);
    let due = due(&case.bytes);
    let fence = json!("fence");
    if due == Due::Silence {
        // Behind it something that is answered, and in the meantime nothing else is.
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
    let messages: Vec<Value> =
        reply.messages().into_iter().filter(|message| message.get("id").is_some()).collect();
    if (400..500).contains(&reply.status) {
        // Who is meant stands in it, if it is a message at all.
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
        assert!(error["message"].is_string(), "an error says what is wrong: {message}");
        assert_ne!(code, -32603, "an internal error for {}: {message}", case.text());
        return code.to_string();
    }
    let result = message.get("result").unwrap_or_else(|| panic!("{message} is no answer"));
    if result["isError"] == true {
        return "isError".to_owned();
    }
    assert!(
        !case.must_fail,
        "{} went well: {}",
        case.text(),
        &message.to_string()[..300.min(message.to_string().len())]
    );
    "ok".to_owned()
}
