//! An agent with every tool an agent can have tries to get calls made that a person or the policy denied.
//!
//! Its actions come from one seed per sequence. The judge is independent of the program: the tools count their effects
//! themselves, and the person remembers every answer. At the end the journal must show no approval that this person did
//! not give. `RUTTER_SEQUENCES` sets how many sequences there are in all, `RUTTER_SEQUENCE` takes one only.
#![cfg(target_os = "linux")]

mod agent;
mod person;
mod sequence;

use crate::clients::fixture::ClientFixture;
use crate::hostile::wire::Era;
use agent::{Agent, Transport};
use person::Person;
use rutter_testkit::adversary::judge::{CountedEffect, PeopleRecord};
use rutter_testkit::adversary::{BROKEN, CHARGE, CHARGE_MAX, INVOICE, LOOK, MAIL, MAILS_MAX, NOTE, WIPE};
use sequence::Sequence;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread;

/// In each run of the tests, over all transports and eras.
const SEQUENCES: u64 = 400;
/// Agents that work in one installation at the same time.
const AGENTS: u64 = 4;

#[test]
fn an_agent_over_pipes_of_the_older_era_gets_no_denied_call_made() {
    attack(Transport::Pipes, Era::Legacy);
}

#[test]
fn an_agent_over_pipes_of_the_newer_era_gets_no_denied_call_made() {
    attack(Transport::Pipes, Era::Modern);
}

#[test]
fn an_agent_over_http_of_the_older_era_gets_no_denied_call_made() {
    attack(Transport::Http, Era::Legacy);
}

#[test]
fn an_agent_over_http_of_the_newer_era_gets_no_denied_call_made() {
    attack(Transport::Http, Era::Modern);
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// What the agents and the person of an installation did, to show that the judge had something to judge.
#[derive(Debug, Default)]
struct AttackTally(BTreeMap<String, u64>);

impl AttackTally {
    fn count(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_default() += 1;
    }

    fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }
}

fn attack(transport: Transport, era: Era) {
    let mut fixture = installation();
    fixture.serve();
    let only = variable("RUTTER_SEQUENCE");
    let count = variable("RUTTER_SEQUENCES").unwrap_or(SEQUENCES).div_ceil(4);
    let (mut people, mut approved, mut tally) = (PeopleRecord::default(), BTreeSet::new(), AttackTally::default());
    let fixture_of_all = &mut fixture;
    let lanes: Vec<_> = (0..AGENTS)
        .map(|lane| {
            let agent = Agent::open(fixture_of_all, transport, era);
            let person = Person::open(fixture_of_all);
            (lane, agent, person)
        })
        .collect();
    let shared = &*fixture_of_all;
    thread::scope(|scope| {
        let workers: Vec<_> = lanes
            .into_iter()
            .map(|(lane, mut agent, mut person)| {
                scope.spawn(move || {
                    let mut tally = AttackTally::default();
                    let seeds = only.map_or(0..count, |only| only..only + 1);
                    for seed in seeds.filter(|seed| seed % AGENTS == lane) {
                        let mut sequence = Sequence::new(seed, transport, &mut agent, &mut person, &mut tally);
                        sequence.run();
                        let orders = sequence.orders();
                        let lines = sequence.lines;
                        let mine =
                            |effect: &CountedEffect| orders.iter().any(|order| effect.arguments["order"] == **order);
                        let effects: Vec<CountedEffect> = effects(shared).into_iter().filter(mine).collect();
                        let found = person.record.violations(&effects);
                        if only.is_some() {
                            println!("{}", lines.join("\n"));
                        }
                        assert!(found.is_empty(), "{}", story(transport, era, seed, &found, &lines));
                    }
                    (person.record, person.approved, tally)
                })
            })
            .collect();
        for worker in workers {
            let (record, calls, counted) = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            people.add(record);
            approved.extend(calls);
            counted.0.into_iter().for_each(|(what, times)| *tally.0.entry(what).or_default() += times);
        }
    });
    let effects = effects(&fixture);
    let found = people.violations(&effects);
    assert!(found.is_empty(), "at the end of all sequences: {found:#?}");
    for effect in &effects {
        tally.count(&format!("effects of {}", effect.tool));
    }
    check_the_journal(&fixture, transport, &approved);
    println!("{transport:?} {era:?}: {count} sequences, {tally:#?}");
    if only.is_none() {
        assert_something_was_tried(&tally, count);
    }
    fixture.close();
}

fn story(transport: Transport, era: Era, seed: u64, found: &[String], lines: &[String]) -> String {
    let test = format!("{transport:?}").to_lowercase();
    let age = if era == Era::Legacy { "older" } else { "newer" };
    format!(
        "sequence {seed} over {transport:?} in the {era:?} era:\n{}\n\nwhat happened:\n{}\n\nagain: RUTTER_SEQUENCE={seed} \
         cargo nextest run -p rutter --all-features over_{test}_of_the_{age}_era_gets",
        found.join("\n"),
        lines.join("\n")
    )
}

/// A server whose tools count their effects, and whose policy guards some of them.
fn installation() -> ClientFixture {
    let tool = |kind: &str| json!({ "kind": kind });
    let world = json!({
        "tools": { CHARGE: tool("once"), INVOICE: tool("once"), WIPE: tool("once"), MAIL: tool("once"),
            NOTE: tool("once"), BROKEN: tool("once"), LOOK: { "kind": "read", "gives": { "amount": 5 } } },
        "faults": { BROKEN: ["fail"] },
    });
    // The person and the user of the agent's programs have the same name.
    let policy = format!(
        "[[policy]]\nname = \"charges\"\ntools = [\"{CHARGE}\"]\napproval = {{ by = [\"operator\"] }}\n\
         [[policy]]\nname = \"large charges\"\ntools = [\"{CHARGE}\"]\nwhen = \"parameters.amount > {CHARGE_MAX}\"\n\
         deny = \"too much\"\n\
         [[policy]]\nname = \"wiping\"\ntools = [\"{WIPE}\"]\ndeny = \"never\"\n\
         [[policy]]\nname = \"mails\"\ntools = [\"{MAIL}\"]\nlimit = {{ calls = {MAILS_MAX}, per = \"24h\" }}\n"
    );
    ClientFixture::with("shop", &world, "reads_per_second = 0\nchanges_per_second = 0", &policy)
}

/// What the tools themselves counted.
fn effects(fixture: &ClientFixture) -> Vec<CountedEffect> {
    let log = fs::read_to_string(fixture.path("log")).unwrap_or_default();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let effect = |line: Value| {
        let tool = format!("{}.{}", line["server"].as_str()?, line["effect"].as_str()?);
        Some(CountedEffect { tool, arguments: line["arguments"].clone(), at: line["at"].as_f64()? })
    };
    lines.filter_map(effect).collect()
}

/// Every approval on record is one that the person gave, or over pipes an unproven one that no rule asked for.
fn check_the_journal(fixture: &ClientFixture, transport: Transport, approved: &BTreeSet<String>) {
    let output = fixture.rutter(&["journal", "export"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (mut under_a_rule, mut granted) = (BTreeSet::new(), BTreeSet::new());
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let Some(stored) = line["entry"]["bytes"].as_str() else { continue };
        let entry: Value = serde_json::from_str(stored).unwrap();
        let (event, actor) = (&entry["event"], &entry["actor"]);
        let call_of = |kind: &str| event[kind]["call"].as_str().map(str::to_owned);
        if !event["approval_requested"]["basis"]["rule"].is_null() {
            under_a_rule.extend(call_of("approval_requested"));
        }
        let Some(call) = call_of("approval_granted") else { continue };
        assert_eq!(actor["party"], "person", "an approval without a person: {entry}");
        if actor.get("proof").is_some_and(|proof| !proof.is_null()) {
            assert_eq!(transport, Transport::Pipes, "nobody proved to be a person: {entry}");
            assert!(!under_a_rule.contains(&call), "the rule names a person: {entry}");
        } else {
            assert!(approved.contains(&call), "the person did not say so: {entry}");
            granted.insert(call);
        }
    }
    assert_eq!(&granted, approved, "every approval that was accepted is on record");
}

/// An attack that reaches nothing would prove nothing.
fn assert_something_was_tried(tally: &AttackTally, count: u64) {
    let charges = tally.of(&format!("effects of {CHARGE}")) + tally.of(&format!("effects of {INVOICE}"));
    assert!(charges >= count / 20, "few approved calls were made: {tally:#?}");
    for (what, least) in [("yes", count / 10), ("no", count / 10), ("refused", count), ("replanned", count / 10)] {
        assert!(tally.of(what) >= least, "{what}: {tally:#?}");
    }
}
