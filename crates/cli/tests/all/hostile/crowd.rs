//! Fifty connections request the same execution at the same moment.

use crate::clients::fixture::ClientFixture;
use crate::hostile::wire::{Era, Line, Pipes};
use serde_json::{Value, json};
use std::sync::{Arc, Barrier};
use std::thread;

const CROWD: usize = 50;
/// Fewer, because each is a process.
const FRONTS: usize = 6;

#[test]
fn fifty_connections_with_one_request_id_get_one_execution_per_principal() {
    let mut fixture = ClientFixture::new();
    let line = Line::open(&mut fixture);
    let plan =
        json!({ "name": "crowd", "steps": [{ "id": "only", "tool": "dock.load", "parameters": { "crate": "one" } }] });
    let save = json!({ "name": "save_plan", "arguments": { "plan": plan } });
    let saved = result_of(&line.ask(Era::Modern, json!(0), "tools/call", save));
    let arguments = json!({ "plan_id": saved["plan_id"], "request_id": "the-one", "wait_seconds": 45 });
    let call = json!({ "name": "execute_plan", "arguments": arguments });
    let ready = Arc::new(Barrier::new(CROWD));
    let one = |number: usize| {
        let (mut line, call, ready) = (line.clone(), call.clone(), Arc::clone(&ready));
        let era = Era::ALL[number % 2];
        let mut pipes = (number < FRONTS).then(|| Pipes::open(&fixture));
        thread::spawn(move || match &mut pipes {
            Some(pipes) => {
                pipes.begin(era);
                ready.wait();
                result_of(&pipes.ask(era, json!(number), "tools/call", call))
            }
            None => {
                if era == Era::Legacy {
                    line.begin();
                }
                ready.wait();
                result_of(&line.ask(era, json!(number), "tools/call", call))
            }
        })
    };
    let crowd: Vec<_> = (0..CROWD).map(one).collect();
    let handles: Vec<Value> = crowd.into_iter().map(|one| one.join().unwrap()).collect();
    assert_eq!(handles.len(), CROWD);
    // A key belongs to its principal: clients over pipes are one, and those with the token over HTTP another.
    for crowd in [&handles[..FRONTS], &handles[FRONTS..]] {
        for handle in crowd {
            assert_eq!(handle["execution_id"], crowd[0]["execution_id"]);
            assert_eq!(handle["status"], "completed", "{handle}");
        }
    }
    assert_ne!(handles[0]["execution_id"], handles[FRONTS]["execution_id"]);
    assert_eq!((fixture.count("call", "load"), fixture.count("effect", "load")), (2, 2));
    fixture.close();
}

fn result_of(answer: &Value) -> Value {
    let report = &answer["result"]["structuredContent"];
    assert!(report.is_object(), "{answer}");
    report.clone()
}
