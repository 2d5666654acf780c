//! An agent with every tool an agent can have tries to get calls made that a person or the policy denied.
//!
//! Its actions come from one seed per sequence. The judge is independent of the program: the tools count their effects
//! themselves, and the person remembers every answer. At the end the journal must show no approval that this person did
//! not give. Some sequences stop or kill the server, which begins again with the same, stricter or looser rules.
//! `RUTTER_SEQUENCES` sets how many sequences there are in all, `RUTTER_SEQUENCE` takes one only.
#![cfg(target_os = "linux")]

mod agent;
mod installation;
mod journal;
mod person;
mod sequence;

use crate::hostile::wire::Era;
use agent::{Agent, Transport};
use installation::Installation;
use person::Person;
use rutter_testkit::adversary::judge::{CountedEffect, PeopleRecord};
use rutter_testkit::adversary::{CHARGE, INVOICE, PEEK, SYNC};
use sequence::{Sequence, SequenceParties};
use std::collections::{BTreeMap, BTreeSet};
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

/// The digests of the calls that people approved, and of those where the server was killed before it had answered.
#[derive(Debug, Default)]
struct ApprovedCalls {
    certainly: BTreeSet<String>,
    perhaps: BTreeSet<String>,
}

impl AttackTally {
    fn count(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_default() += 1;
    }

    fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }
}

/// One of the agents, and the person who answers it.
struct AttackLane {
    number: u64,
    agent: Agent,
    person: Person,
    tally: AttackTally,
}

fn attack(transport: Transport, era: Era) {
    let installation = Installation::open();
    let count = variable("RUTTER_SEQUENCES").unwrap_or(SEQUENCES).div_ceil(4);
    let lanes: Vec<AttackLane> = (0..AGENTS).map(|number| lane(&installation, number, transport, era)).collect();
    let lanes: Vec<AttackLane> = thread::scope(|scope| {
        let start = |lane| scope.spawn(|| sequences(&installation, lane, (transport, era), count));
        let workers: Vec<_> = lanes.into_iter().map(start).collect();
        let ended = workers.into_iter().map(thread::ScopedJoinHandle::join);
        ended.map(|lane| lane.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let (mut people, mut approved, mut tally) =
        (PeopleRecord::default(), ApprovedCalls::default(), AttackTally::default());
    for lane in lanes {
        people.add(lane.person.record);
        approved.certainly.extend(lane.person.approved);
        approved.perhaps.extend(lane.person.perhaps_approved);
        lane.tally.0.into_iter().for_each(|(what, times)| *tally.0.entry(what).or_default() += times);
    }
    let effects = installation.log().news();
    let state = installation.into_state();
    let found = people.violations(&effects, &state.rules);
    assert!(found.is_empty(), "at the end of all sequences: {found:#?}");
    for effect in &effects {
        tally.count(&format!("{} of {}", if effect.is_read { "reads" } else { "effects" }, effect.tool));
    }
    journal::check(&state.fixture, transport, &approved);
    println!("{transport:?} {era:?}: {count} sequences, {tally:#?}");
    if variable("RUTTER_SEQUENCE").is_none() {
        assert_something_was_tried(&tally, count);
    }
    state.fixture.close();
}

/// Over HTTP, every other agent has a key with which it may also try tools out. One is named as a rule names a person.
fn lane(installation: &Installation, number: u64, transport: Transport, era: Era) -> AttackLane {
    let state = installation.enter();
    let person = Person::open(&state.fixture);
    let name = if number == 1 { "auditor" } else { "pilot" };
    let key = (transport == Transport::Http && number % 2 == 1).then(|| person.create_key(name));
    let agent = Agent::open(&state.fixture, transport, era, key);
    AttackLane { number, agent, person, tally: AttackTally::default() }
}

/// Every sequence of one agent.
fn sequences(
    installation: &Installation,
    mut lane: AttackLane,
    (transport, era): (Transport, Era),
    count: u64,
) -> AttackLane {
    let only = variable("RUTTER_SEQUENCE");
    let seeds = only.map_or(0..count, |only| only..only + 1);
    let (mut log, mut run, number) = (installation.log(), 0, lane.number);
    for seed in seeds.filter(|seed| seed % AGENTS == number) {
        let AttackLane { agent, person, tally, .. } = &mut lane;
        let parties = SequenceParties { installation, run: &mut run, agent, person, tally };
        let mut sequence = Sequence::new(seed, transport, parties);
        sequence.run();
        let (orders, lines) = (sequence.orders(), sequence.lines);
        let is_own = |effect: &CountedEffect| orders.iter().any(|order| effect.arguments["order"] == **order);
        let effects: Vec<CountedEffect> = log.news().into_iter().filter(is_own).collect();
        let found = lane.person.record.violations(&effects, &installation.enter().rules);
        if only.is_some() {
            println!("{}", lines.join("\n"));
        }
        assert!(found.is_empty(), "{}", story(transport, era, seed, &found, &lines));
    }
    lane
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

/// An attack that reaches nothing would prove nothing.
fn assert_something_was_tried(tally: &AttackTally, count: u64) {
    let of = |tool: &str| tally.of(&format!("effects of {tool}"));
    assert!(of(CHARGE) + of(INVOICE) >= count / 20, "few approved calls were made: {tally:#?}");
    assert!(
        of(SYNC) + tally.of(&format!("reads of {PEEK}")) >= count / 20,
        "few repeatable calls were made: {tally:#?}"
    );
    let ends = ["stops", "kills", "kills during requests"].map(|how| tally.of(how)).iter().sum::<u64>();
    assert!(ends >= count / 20, "few restarts: {tally:#?}");
    for (what, least) in [("yes", count / 10), ("no", count / 10), ("refused", count), ("replanned", count / 10)] {
        assert!(tally.of(what) >= least, "{what}: {tally:#?}");
    }
}
