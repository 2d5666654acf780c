//! S7: a rule that went through on 485 of 500 records turns out wrong a day later, when 12 were changed by others.

use crate::answer::{questions, steps, text};
use crate::stage::{Kind, Stage, example, until};
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
fn a_wrong_rule_is_taken_back_where_nobody_else_has_changed_the_record() {
    let mut stage = Stage::new();
    stage.server("crm", Kind::Stdio, &["search", "update"]);
    let records: Vec<Value> =
        (0..RECORDS).map(|record| json!({ "id": name(record), "version": 1, "country": "DE" })).collect();
    let bad: Vec<String> = (0..BAD).map(|bad| name(bad * 33)).collect();
    stage.tool("crm.search", json!({ "gives": { "records": records } }));
    stage.tool("crm.update", json!({ "kind": "versioned", "refuses": { "id": bad } })).open();
    let plan = fs::read_to_string(example("bulk-update.yaml")).unwrap();
    let plan = plan.replace("    approval: { required: true, expires: 24h }\n", "");
    stage.write("plan.yaml", &plan.replace("\nsteps:", "\nmax_parallel: 8\nsteps:"));

    let run = stage.rutter(&["run", "plan.yaml", "--input", "country=DE", "--input", "rule=new", "--json"]);
    let ended = run.ended(1, "partial");
    let updated = stage.lines("effect", "crm.update");
    assert_eq!(updated.len(), RECORDS - BAD);
    assert_eq!(stage.lines("call", "crm.update").len(), RECORDS, "a permanent error is not tried again");
    assert_eq!(steps(&ended), ["find=completed", "update=failed"]);
    let execution = run.execution();

    let others: Vec<String> = updated
        .iter()
        .step_by(40)
        .take(CHANGED)
        .map(|line| text(&line["arguments"]["id"]).to_owned())
        .collect();
    assert_eq!(others.len(), CHANGED);
    let mut log = OpenOptions::new().append(true).open(stage.path("log")).unwrap();
    for record in &others {
        let change = json!({
            "effect": "update", "server": "crm", "key": null, "by": "somebody else",
            "arguments": { "id": record, "fields": { "phone": "1" } }, "result": { "id": record, "version": 3 },
        });
        writeln!(log, "{change}").unwrap();
    }

    let undo = stage.rutter(&["exec", "undo", &execution, "--reason", "the rule is wrong", "--json"]);
    let stuck = undo.ended(3, "waiting");
    let asked = questions(&stuck, "compensation");
    assert_eq!(asked.len(), CHANGED);
    let restored: Vec<Value> = stage.lines("effect", "crm.update").split_off(RECORDS - BAD + CHANGED);
    assert_eq!(restored.len(), RECORDS - BAD - CHANGED);
    let ids: BTreeSet<&str> = restored.iter().map(|line| text(&line["arguments"]["id"])).collect();
    assert_eq!(ids.len(), restored.len(), "each record once");
    for line in &restored {
        assert_eq!(line["arguments"]["fields"]["original"], line["arguments"]["id"], "as it was before");
    }
    assert!(others.iter().all(|record| !ids.contains(record.as_str())), "nobody's change is overwritten");

    let owner = stage.start(&["exec", "watch", &execution, "--wait", "--json"]);
    until("it can be reached", || stage.path("data/rutter.sock").exists());
    for question in asked {
        let step = ["--step", text(&question["part"]), "--no-wait"];
        let skipped = stage.rutter(&[&["exec", "skip", &execution], &step[..]].concat());
        assert_eq!(skipped.code, Some(0), "{skipped:?}");
    }
    let ended = owner.wait().ended(1, "failed");
    assert_eq!(ended["remains"].as_array().unwrap().len(), CHANGED, "what is left is named");
    stage.verify(&execution);
}
