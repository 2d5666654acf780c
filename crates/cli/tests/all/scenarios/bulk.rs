//! S7: an update of 485 of 500 records turns out wrong a day later, after others have changed 12 of them.

use crate::scenarios::answer::{questions, steps, text};
use crate::scenarios::fixture::{Kind, ScenarioFixture, example, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;

const RECORDS: usize = 500;
const BAD: usize = 15;
const CHANGED: usize = 12;

fn name(record: usize) -> String {
    format!("c-{record:03}")
}

#[test]
fn a_wrong_update_is_undone_except_where_others_have_changed_the_record() {
    let mut fixture = ScenarioFixture::new();
    fixture.server("crm", Kind::Stdio, &["search", "update"]);
    let records: Vec<Value> =
        (0..RECORDS).map(|record| json!({ "id": name(record), "version": 1, "country": "DE" })).collect();
    let bad: Vec<String> = (0..BAD).map(|bad| name(bad * 33)).collect();
    fixture.tool("crm.search", json!({ "gives": { "records": records } }));
    fixture.tool("crm.update", json!({ "kind": "versioned", "refuses": { "id": bad } })).open();
    let plan = fs::read_to_string(example("bulk-update.yaml")).unwrap();
    let plan = plan.replace("    approval: { required: true, expires: 24h }\n", "");
    fixture.write("plan.yaml", &plan.replace("\nsteps:", "\nmax_parallel: 8\nsteps:"));

    let run = fixture.rutter(&["run", "plan.yaml", "--input", "country=DE", "--input", "rule=new", "--json"]);
    let ended = run.ended(1, "partial");
    let updated = fixture.lines("effect", "crm.update");
    assert_eq!(updated.len(), RECORDS - BAD);
    assert_eq!(fixture.lines("call", "crm.update").len(), RECORDS, "a permanent error is not retried");
    assert_eq!(steps(&ended), ["find=completed", "update=failed"]);
    let execution = run.execution();

    let others: Vec<String> =
        updated.iter().step_by(40).take(CHANGED).map(|line| text(&line["arguments"]["id"]).to_owned()).collect();
    assert_eq!(others.len(), CHANGED);
    let mut log = OpenOptions::new().append(true).open(fixture.path("log")).unwrap();
    for record in &others {
        let change = json!({
            "effect": "update", "server": "crm", "key": null, "by": "somebody else",
            "arguments": { "id": record, "fields": { "phone": "1" } }, "result": { "id": record, "version": 3 },
        });
        writeln!(log, "{change}").unwrap();
    }

    let undo = fixture.rutter(&["exec", "undo", &execution, "--reason", "the rule is wrong", "--json"]);
    let stuck = undo.ended(3, "waiting");
    let asked = questions(&stuck, "compensation");
    assert_eq!(asked.len(), CHANGED);
    let restored: Vec<Value> = fixture.lines("effect", "crm.update").split_off(RECORDS - BAD + CHANGED);
    assert_eq!(restored.len(), RECORDS - BAD - CHANGED);
    let ids: BTreeSet<&str> = restored.iter().map(|line| text(&line["arguments"]["id"])).collect();
    assert_eq!(ids.len(), restored.len(), "each record once");
    for line in &restored {
        assert_eq!(line["arguments"]["fields"]["original"], line["arguments"]["id"], "as it was before");
    }
    assert!(others.iter().all(|record| !ids.contains(record.as_str())), "no other change is overwritten");

    let owner = fixture.start(&["exec", "watch", &execution, "--wait", "--json"]);
    until("it can be reached", || fixture.path("data/rutter.sock").exists());
    for question in asked {
        let step = ["--step", text(&question["part"]), "--reason", "their change stays", "--no-wait"];
        let skipped = fixture.rutter(&[&["exec", "skip", &execution], &step[..]].concat());
        assert_eq!(skipped.code, Some(0), "{skipped:?}");
    }
    let ended = owner.wait().ended(1, "failed");
    assert_eq!(ended["remains"].as_array().unwrap().len(), CHANGED, "what remains is listed");
    fixture.verify(&execution);
}
