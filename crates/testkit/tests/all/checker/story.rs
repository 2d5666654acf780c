//! Three accounts of the same three executions, which agree until a test changes them: one that completed after a lost
//! attempt, one that was cancelled and undone, and one that an agent began and handed back with another plan.

use rutter_core::hash::Hash;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const BEGAN_MS: u64 = 1_000_000;
/// Between two entries of a journal.
const STEP_MS: u64 = 100;

#[derive(Clone, Debug)]
pub struct Story {
    pub notes: Vec<Value>,
    pub log: Vec<Value>,
    /// Events with their payloads as `{"$": value}`.
    pub journals: BTreeMap<String, Vec<Value>>,
    /// Whether one stored byte is changed after everything was hashed.
    pub tampered: bool,
}

impl Story {
    pub fn told() -> Story {
        let plan = |tag: &str| {
            json!({ "plan": tag, "document": { "steps": [
                { "id": "a" }, { "id": "b", "depends_on": ["a"] }, { "id": "c" },
            ] } })
        };
        let json = json!({ "execution": "exec_2", "what": "cancel", "reason": "enough" });
        let mut notes = vec![
            json!({ "limits": { "dock": 2 }, "once": ["dock.once"], "keyed": ["dock.keyed", "dock.undo"] }),
            plan("p1"),
            plan("p2"),
            plan("p4"),
            json!({ "started": "exec_1", "tag": "p1", "code": 0 }),
            json!({ "acknowledged": json }),
            json!({ "final": "exec_1", "status": "completed", "questions": 0 }),
            json!({ "final": "exec_2", "status": "compensated", "questions": 0 }),
            json!({ "verified": true, "said": "" }),
        ];
        notes.extend(agents_notes());
        let completed = vec![
            opened("p1"),
            json!({ "execution_started": {} }),
            start("a", "p1", "do", 1),
            succeeded("a", "do", 1),
            start("b", "p1", "do", 1),
            lost("b", "do", 1),
            start("b", "p1", "do", 2),
            succeeded("b", "do", 2),
            json!({ "execution_ended": { "outcome": "completed", "reason": "", "remains": [] } }),
        ];
        let undone = vec![
            opened("p2"),
            json!({ "execution_started": {} }),
            start("a", "p2", "do", 1),
            succeeded("a", "do", 1),
            start("b", "p2", "do", 1),
            succeeded("b", "do", 1),
            json!({ "cancel_requested": { "reason": "enough", "undo": true } }),
            json!({ "compensation_started": { "parts": ["b", "a"], "whole": true, "reason": "enough" } }),
            start("b", "p2", "undo", 1),
            succeeded("b", "undo", 1),
            start("a", "p2", "undo", 1),
            succeeded("a", "undo", 1),
            json!({ "execution_ended": { "outcome": "compensated", "reason": "", "remains": [] } }),
        ];
        let calls = [
            ("a", "p1", "do", 250),
            ("b", "p1", "do", 650),
            ("a", "p2", "do", 250),
            ("b", "p2", "do", 450),
            ("b", "p2", "undo", 850),
            ("a", "p2", "undo", 1_050),
        ];
        let mut log: Vec<Value> =
            calls.into_iter().flat_map(|(step, tag, side, at)| call(step, tag, side, at)).collect();
        log.extend(call("a", "p4", "do", 250).map(by_agent));
        log.extend(call("b", "p4", "do", 650));
        let journals = [("exec_1", completed), ("exec_2", undone), ("exec_4", handed_back())];
        let journals = journals.into_iter().map(|(name, events)| (name.to_owned(), events)).collect();
        Story { notes, log, journals, tampered: false }
    }

    fn write(&self, directory: &Path) {
        let write = |name: &str, lines: &[Value]| {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            fs::write(directory.join(name), text).unwrap();
        };
        write("notes.jsonl", &self.notes);
        write("effects.log", &self.log);
        write("export.jsonl", &self.export());
    }

    fn export(&self) -> Vec<Value> {
        let mut lines = vec![json!({ "header": { "tenant": "default" } })];
        for (name, events) in &self.journals {
            let mut prev = Hash::of_fields("rutter/journal/v1", &[b"default", name.as_bytes()]);
            for (place, event) in events.iter().enumerate() {
                let (seq, mut event, mut payloads) = (place as u64 + 1, event.clone(), Vec::new());
                seal(&mut event, &mut payloads);
                let at = BEGAN_MS + place as u64 * STEP_MS;
                let bytes = json!({ "v": 1, "execution": name, "seq": seq, "at": at, "event": event }).to_string();
                let hash = Hash::of(&[b"rutter/entry/v1", &prev.0, bytes.as_bytes()]);
                lines.push(json!({ "entry": {
                    "execution": name, "seq": seq, "prev": prev, "hash": hash, "bytes": bytes,
                    "payloads": payloads,
                } }));
                prev = hash;
            }
        }
        if self.tampered {
            let bytes = lines[3]["entry"]["bytes"].as_str().unwrap().replace("1000200", "1000201");
            lines[3]["entry"]["bytes"] = bytes.into();
        }
        lines
    }

    pub fn copy(&mut self, from: &str, to: &str) {
        self.journals.insert(to.to_owned(), self.journals[from].clone());
        self.notes.push(json!({ "final": to, "status": "completed", "questions": 0 }));
    }

    pub fn insert<const N: usize>(&mut self, execution: &str, at: usize, events: [Value; N]) {
        let journal = self.journals.get_mut(execution).unwrap();
        journal.splice(at..at, events);
        // Calls come after their records, whatever was inserted in between.
        for line in &mut self.log {
            line["at"] = json!(line["at"].as_f64().unwrap() + (N as u64 * STEP_MS) as f64 / 1_000.0);
        }
    }

    /// The index of the first event of a kind.
    pub fn place(&self, execution: &str, kind: &str) -> usize {
        self.journals[execution].iter().position(|event| event.get(kind).is_some()).unwrap()
    }

    /// Takes out the first event of a kind.
    pub fn remove(&mut self, execution: &str, kind: &str) {
        let at = self.place(execution, kind);
        self.journals.get_mut(execution).unwrap().remove(at);
    }

    pub fn replace(&mut self, execution: &str, kind: &str, event: Value) {
        let at = self.place(execution, kind);
        self.journals.get_mut(execution).unwrap()[at] = event;
    }

    pub fn change(&mut self, execution: &str, kind: &str, change: fn(&mut Value)) {
        let at = self.place(execution, kind);
        change(&mut self.journals.get_mut(execution).unwrap()[at][kind]);
    }

    pub fn change_last(&mut self, execution: &str, kind: &str, change: fn(&mut Value)) {
        let journal = self.journals.get_mut(execution).unwrap();
        let at = journal.iter().rposition(|event| event.get(kind).is_some()).unwrap();
        change(&mut journal[at][kind]);
    }

    pub fn move_call(&mut self, step: &str, tag: &str, side: &str, at: u64) {
        let id = format!("{step}-{tag}-{side}");
        self.log.retain(|line| line["id"] != *id && line["end"] != *id && line["effect_of"] != *id);
        self.log.extend(call(step, tag, side, at));
    }

    /// The note of this kind about an execution of an agent.
    pub fn note(&mut self, kind: &str, holds: fn(&Value) -> bool) -> &mut Value {
        self.notes.iter_mut().find(|note| note.get(kind).is_some_and(holds)).unwrap()
    }

    pub fn end_as(&mut self, execution: &str, status: &str, questions: u64) {
        let note = self.notes.iter_mut().find(|note| note["final"] == *execution).unwrap();
        (note["status"], note["questions"]) = (status.into(), questions.into());
    }
}

/// Runs the checker on stories: which invariants it finds violated in each, with its evidence.
pub fn check(stories: &[Story]) -> Vec<Vec<(String, String)>> {
    let home = tempfile::tempdir().unwrap();
    let checker = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/check.py");
    let mut command = Command::new("python3");
    command.arg(checker);
    for (number, story) in stories.iter().enumerate() {
        let directory = home.path().join(number.to_string());
        fs::create_dir(&directory).unwrap();
        story.write(&directory);
        command.arg(directory);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let word = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    let (mut all, mut found) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        match line.get("counted") {
            Some(_) => all.push(std::mem::take(&mut found)),
            None => found.push((word(&line, "invariant"), word(&line, "evidence"))),
        }
    }
    assert_eq!(all.len(), stories.len(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.success(), all.iter().all(Vec::is_empty));
    all
}

/// Replaces payloads by commitments.
fn seal(event: &mut Value, payloads: &mut Vec<Value>) {
    match event {
        Value::Object(fields) => {
            if let Some(value) = fields.get("$") {
                let (bytes, salt) = (value.to_string(), [7_u8; 16]);
                let commitment = Hash::of_fields("rutter/payload/v1", &[&salt, bytes.as_bytes()]);
                payloads.push(json!({ "kept": {
                    "commitment": commitment, "salt": "07".repeat(16), "bytes": bytes,
                } }));
                *event = json!({ "payload": commitment });
                return;
            }
            fields.values_mut().for_each(|field| seal(field, payloads));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| seal(item, payloads)),
        _ => {}
    }
}

fn opened(tag: &str) -> Value {
    json!({ "execution_opened": { "plan": "hash", "revision": 1, "inputs": { "$": { "tag": tag } } } })
}

/// The agent does `a`, replans, and hands back; the program does `b`.
fn handed_back() -> Vec<Value> {
    let mut opened = opened("p4");
    opened["execution_opened"]["driver"] = json!("agent");
    let mut begun = start("a", "p4", "do", 1);
    begun["attempt_started"]["by"] = json!("agent");
    let mut done = succeeded("a", "do", 1);
    done["attempt_succeeded"]["result"] = json!({ "$": { "mark": "because-p4-1" } });
    vec![
        opened,
        json!({ "execution_started": {} }),
        begun,
        done,
        json!({ "replanned": { "plan": "other", "revision": 2, "reason": "because-p4-2" } }),
        handed_over("server", "because-p4-3"),
        start("b", "p4", "do", 1),
        succeeded("b", "do", 1),
        json!({ "execution_ended": { "outcome": "completed", "reason": "", "remains": [] } }),
    ]
}

fn agents_notes() -> [Value; 6] {
    let steps = json!([{ "id": "a" }, { "id": "b", "depends_on": ["a"] }, { "id": "d", "depends_on": ["b"] }]);
    let acknowledged = |what: &str, mark: &str| {
        let told = json!({ "execution": "exec_4", "what": what, "reason": mark });
        json!({ "acknowledged": told })
    };
    [
        json!({ "replan": "exec_4", "reason": "because-p4-2", "document": { "steps": steps } }),
        recorded("started", "because-p4-0", 200),
        recorded("completed", "because-p4-1", 300),
        acknowledged("replan", "because-p4-2"),
        acknowledged("hand_back", "because-p4-3"),
        json!({ "final": "exec_4", "status": "completed", "questions": 0 }),
    ]
}

/// The agent was told that this is on record about `a`.
pub fn recorded(status: &str, mark: &str, at: u64) -> Value {
    json!({ "recorded": {
        "execution": "exec_4", "tag": "p4", "part": "a", "status": status, "reason": mark,
        "since": BEGAN_MS + at - 5, "at": BEGAN_MS + at + 5,
    } })
}

pub fn handed_over(to: &str, reason: &str) -> Value {
    json!({ "handed_over": { "to": to, "reason": reason } })
}

fn by_agent(mut line: Value) -> Value {
    line["life"] = json!("agent-p4");
    line
}

/// `a` is called once, everything else by its key.
fn tool(part: &str, side: &str) -> &'static str {
    match (part, side) {
        (_, "undo") => "undo",
        ("a", _) => "once",
        _ => "keyed",
    }
}

fn arguments(part: &str, tag: &str, side: &str) -> Value {
    json!({ "tag": tag, "step": part, "side": side })
}

pub fn start(part: &str, tag: &str, side: &str, attempt: u32) -> Value {
    json!({ "attempt_started": {
        "part": part, "side": side, "attempt": attempt, "tool": format!("dock.{}", tool(part, side)),
        "key": format!("{part}-{tag}-{side}"), "parameters": { "$": arguments(part, tag, side) },
    } })
}

pub fn succeeded(part: &str, side: &str, attempt: u32) -> Value {
    json!({ "attempt_succeeded": { "part": part, "side": side, "attempt": attempt, "result": { "$": {} } } })
}

pub fn failed(part: &str, side: &str, attempt: u32) -> Value {
    json!({ "attempt_failed": {
        "part": part, "side": side, "attempt": attempt, "maybe": false, "then": "give_up",
    } })
}

pub fn lost(part: &str, side: &str, attempt: u32) -> Value {
    json!({ "attempt_lost": { "part": part, "side": side, "attempt": attempt, "then": "in_doubt" } })
}

pub fn retry(step: &str) -> Value {
    json!({ "question_answered": { "about": { "failure": step }, "answer": "retry", "reason": "again" } })
}

/// What a tool logs of one call: its beginning, its effect, its end.
pub fn call(part: &str, tag: &str, side: &str, at: u64) -> [Value; 3] {
    let id = format!("{part}-{tag}-{side}");
    let begun = json!({
        "call": tool(part, side), "arguments": arguments(part, tag, side), "id": id, "life": null,
        "server": "dock", "pid": 7, "at": seconds(at),
    });
    [begun, effect(part, tag, side, at), end(&id, at + 10)]
}

pub fn effect(part: &str, tag: &str, side: &str, at: u64) -> Value {
    let id = format!("{part}-{tag}-{side}");
    json!({
        "effect": tool(part, side), "arguments": arguments(part, tag, side), "key": id, "effect_of": id,
        "server": "dock", "pid": 7, "at": seconds(at),
    })
}

pub fn end(id: &str, at: u64) -> Value {
    json!({ "end": id, "server": "dock", "pid": 7, "at": seconds(at) })
}

fn seconds(at: u64) -> f64 {
    (BEGAN_MS + at) as f64 / 1_000.0
}
