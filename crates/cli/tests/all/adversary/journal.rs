//! What the journal must show after an attack: no approval that the person did not give, no call asked for without end.

use super::ApprovedCalls;
use super::agent::Transport;
use crate::clients::fixture::ClientFixture;
use rutter_testkit::adversary::ASK_AGAIN_MAX;
use rutter_testkit::adversary::judge::GuardedCall;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Reads every entry of an export.
pub fn check(fixture: &ClientFixture, transport: Transport, approved: &ApprovedCalls) {
    let output = fixture.rutter(&["journal", "export"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut reader = ApprovalReader::of(transport, approved);
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        reader.read(&line["entry"]);
    }
    let missing: Vec<_> = approved.certainly.difference(&reader.granted).collect();
    assert!(missing.is_empty(), "approvals that were accepted are not on record: {missing:?}");
}

struct ApprovalReader<'a> {
    transport: Transport,
    approved: &'a ApprovedCalls,
    under_a_rule: BTreeSet<String>,
    granted: BTreeSet<String>,
    /// The call that was asked for last, by execution and part.
    asked: BTreeMap<(String, String), GuardedCall>,
    /// How often a denied call was asked for again, by execution.
    denied: BTreeMap<(String, GuardedCall), usize>,
}

impl ApprovalReader<'_> {
    fn of(transport: Transport, approved: &ApprovedCalls) -> ApprovalReader<'_> {
        let (under_a_rule, granted) = (BTreeSet::new(), BTreeSet::new());
        ApprovalReader { transport, approved, under_a_rule, granted, asked: BTreeMap::new(), denied: BTreeMap::new() }
    }

    fn read(&mut self, line: &Value) {
        let Some(stored) = line["bytes"].as_str() else { return };
        let entry: Value = serde_json::from_str(stored).unwrap();
        let execution = line["execution"].as_str().unwrap_or_default();
        let of = |kind: &str| entry["event"].get(kind);
        if let Some(asked) = of("approval_requested") {
            self.read_request(execution, asked, payload(line, &asked["parameters"]));
        }
        if let Some(denied) = of("approval_denied") {
            let call = self.asked[&(execution.to_owned(), denied["part"].to_string())].clone();
            self.denied.entry((execution.to_owned(), call)).or_default();
        }
        if let Some(granted) = of("approval_granted") {
            let call = self.asked[&(execution.to_owned(), granted["part"].to_string())].clone();
            self.denied.remove(&(execution.to_owned(), call));
            self.read_grant(&entry, granted);
        }
    }

    fn read_request(&mut self, execution: &str, asked: &Value, parameters: Option<Value>) {
        if !asked["basis"]["rule"].is_null() {
            self.under_a_rule.extend(asked["call"].as_str().map(str::to_owned));
        }
        let parameters = parameters.expect("nothing is erased");
        let call = GuardedCall::new(asked["tool"].as_str().unwrap(), &parameters);
        self.asked.insert((execution.to_owned(), asked["part"].to_string()), call.clone());
        if let Some(again) = self.denied.get_mut(&(execution.to_owned(), call)) {
            *again += 1;
            assert!(*again <= ASK_AGAIN_MAX, "asked for {again} times after a no: {execution} {asked} {parameters}");
        }
    }

    /// Every approval is one that the person gave, or over pipes an unproven one that no rule asked for.
    fn read_grant(&mut self, entry: &Value, granted: &Value) {
        let (call, actor) = (granted["call"].as_str().unwrap(), &entry["actor"]);
        assert_eq!(actor["party"], "person", "an approval without a person: {entry}");
        if actor.get("proof").is_some_and(|proof| !proof.is_null()) {
            assert_eq!(self.transport, Transport::Pipes, "nobody proved to be a person: {entry}");
            assert!(!self.under_a_rule.contains(call), "the rule names a person: {entry}");
        } else {
            let is_known = self.approved.certainly.contains(call) || self.approved.perhaps.contains(call);
            assert!(is_known, "the person did not say so: {entry}");
            self.granted.insert(call.to_owned());
        }
    }
}

/// The value that an entry commits to.
fn payload(line: &Value, commitment: &Value) -> Option<Value> {
    let mut payloads = line["payloads"].as_array()?.iter().map(|payload| &payload["kept"]);
    let found = payloads.find(|payload| payload["commitment"] == commitment["payload"])?;
    serde_json::from_str(found["bytes"].as_str()?).ok()
}
