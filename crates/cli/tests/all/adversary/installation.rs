//! The installation that the agents of an attack share: its tools, its rules, and its restarts.

use super::AttackTally;
use crate::clients::fixture::{ClientFixture, rutter};
use rutter_testkit::adversary::judge::CountedEffect;
use rutter_testkit::adversary::{
    BROKEN, CHARGE, CHARGE_MAX, INVOICE, LOOK, MAIL, MAILS_MAX, NOTE, PEEK, PRY, RuleSet, SLOW, SYNC, WIPE,
};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Requests share it; a restart has it alone.
pub struct Installation {
    state: RwLock<InstallationState>,
    folder: PathBuf,
}

pub struct InstallationState {
    pub fixture: ClientFixture,
    /// The rules of each run of the server.
    pub rules: Vec<RuleSet>,
}

impl Installation {
    /// A server whose tools count their effects, and whose policy guards some of them.
    pub fn open() -> Installation {
        let mut fixture = ClientFixture::with(
            "shop",
            &world(0),
            "reads_per_second = 0\nchanges_per_second = 0",
            &policy(RuleSet::Usual),
        );
        fixture.serve();
        let folder = fixture.path("");
        Installation { state: RwLock::new(InstallationState { fixture, rules: vec![RuleSet::Usual] }), folder }
    }

    /// For a request while the server runs.
    pub fn enter(&self) -> RwLockReadGuard<'_, InstallationState> {
        self.state.read().expect("no other agent has failed")
    }

    /// For a restart, when no other agent has a request open.
    pub fn alone(&self) -> RwLockWriteGuard<'_, InstallationState> {
        self.state.write().expect("no other agent has failed")
    }

    pub fn into_state(self) -> InstallationState {
        self.state.into_inner().expect("no agent has failed")
    }

    /// The program at the command line, beside the server.
    pub fn rutter(&self, words: &[&str]) -> Command {
        rutter(&self.folder, words)
    }

    pub fn log(&self) -> EffectLog {
        EffectLog { path: self.folder.join("log"), read_to: 0 }
    }
}

impl InstallationState {
    /// Starts the server with these rules, after it has ended in whatever way.
    pub fn start_again(&mut self, rules: RuleSet, tally: &mut AttackTally) {
        // An agent's program may have started one meanwhile.
        self.fixture.stop();
        self.fixture.configure(&world(self.rules.len()), &policy(rules));
        self.rules.push(rules);
        self.fixture.serve();
        tally.count(&format!("{rules:?} runs"));
    }
}

/// What the tools themselves counted, as far as it was not read yet.
pub struct EffectLog {
    path: PathBuf,
    read_to: u64,
}

impl EffectLog {
    pub fn news(&mut self) -> Vec<CountedEffect> {
        let Ok(file) = File::open(&self.path) else { return Vec::new() };
        let mut reader = BufReader::new(file);
        reader.seek(SeekFrom::Start(self.read_to)).unwrap();
        let (mut effects, mut line) = (Vec::new(), String::new());
        loop {
            line.clear();
            let length = reader.read_line(&mut line).unwrap();
            if !line.ends_with('\n') {
                return effects;
            }
            self.read_to += length as u64;
            effects.extend(effect(&serde_json::from_str(&line).unwrap()));
        }
    }
}

fn effect(line: &Value) -> Option<CountedEffect> {
    let tool = line["effect"].as_str().or(line["seen"].as_str())?;
    let tool = format!("{}.{tool}", line["server"].as_str()?);
    let run = usize::try_from(line["run"].as_u64()?).ok()?;
    let is_read = line["effect"].is_null();
    Some(CountedEffect { tool, arguments: line["arguments"].clone(), at: line["at"].as_f64()?, run, is_read })
}

fn world(run: usize) -> Value {
    let tool = |kind: &str| json!({ "kind": kind });
    let read = json!({ "kind": "read", "gives": { "amount": 5, "amounts": [5, 6] } });
    let repeatable = json!({ "readOnlyHint": false, "idempotentHint": true });
    json!({
        "tools": { CHARGE: tool("once"), INVOICE: tool("once"), WIPE: tool("once"), MAIL: tool("once"),
            NOTE: tool("once"), BROKEN: tool("once"), SLOW: { "kind": "once", "takes_ms": 300 }, LOOK: read, PEEK: read,
            PRY: read, SYNC: { "kind": "idempotent", "annotations": repeatable } },
        "faults": { BROKEN: ["fail"] },
        "run": run,
    })
}

fn policy(rules: RuleSet) -> String {
    let rule =
        |name: &str, tool: &str, says: &str| format!("[[policy]]\nname = \"{name}\"\ntools = [\"{tool}\"]\n{says}\n");
    // The person and the user of the agent's programs have the same name.
    let asked = "approval = { by = [\"operator\"] }";
    let audited = "approval = { by = [\"auditor\"] }";
    let guarded = match rules {
        RuleSet::Usual => {
            vec![rule("charges", CHARGE, asked), rule("confidential", PEEK, asked), rule("publishing", SYNC, asked)]
        }
        RuleSet::Stricter => vec![
            rule("charges", CHARGE, audited),
            rule("invoices", INVOICE, audited),
            rule("publishing", SYNC, audited),
            rule("confidential", PEEK, "deny = \"not now\""),
        ],
        RuleSet::Looser => Vec::new(),
    };
    let large = format!("when = \"parameters.amount > {CHARGE_MAX}\"\ndeny = \"too much\"");
    let always = [
        rule("large charges", CHARGE, &large),
        rule("wiping", WIPE, "deny = \"never\""),
        rule("secrets", PRY, "deny = \"never\""),
        rule("mails", MAIL, &format!("limit = {{ calls = {MAILS_MAX}, per = \"24h\" }}")),
    ];
    [guarded.concat(), always.concat()].concat()
}
