//! One event of every variant, with plain values for golden files or random ones for properties.

#![allow(dead_code, reason = "two test programs share this file, and each uses a part of it")]

use rutter_core::actor::{Actor, RequiredProof};
use rutter_core::glob::NamePattern;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PartId, PlanId, StepId, ToolName};
use rutter_core::journal::event::{
    ApprovalBasis, AttemptFollowUp, CallSide, Deviation, DoubtSource, DueKind, Event, EventRecord, ExecutionEnding,
    ExecutionLimit, LateAnswer, LateEffect, OverdueTimer, PlanReference, Question, QuestionAnswer, RemovedExecution,
    SkipReason,
};
use rutter_core::journal::payload::{EventPayload, PayloadSalt};
use rutter_core::plan::{Driver, PolicyAction};
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::{FailureCategory, ToolFailure};
use serde_json::{Value, json};

/// The source of the values of a sample.
pub(crate) struct Values {
    /// `None` for the plain values; otherwise the state of the random numbers.
    random: Option<u64>,
    /// The choice that the plain values take.
    round: usize,
    salts: u8,
}

impl Values {
    pub(crate) fn plain(round: usize) -> Values {
        Values { random: None, round, salts: 0 }
    }

    pub(crate) fn random(seed: u64) -> Values {
        Values { random: Some(seed), round: 0, salts: 0 }
    }

    pub(crate) fn salt(&mut self) -> PayloadSalt {
        self.salts = self.salts.wrapping_add(1);
        PayloadSalt([self.salts; 16])
    }

    fn number(&mut self, plain: u64) -> u64 {
        let Some(state) = &mut self.random else { return plain };
        // SplitMix64: short, and every seed has its own sequence.
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn text(&mut self, plain: &str) -> String {
        const LETTERS: [char; 12] = ['a', 'Z', '0', ' ', '"', '\\', '\n', '\u{1}', '{', 'é', '\u{2028}', '🜚'];
        let length = self.number(0) % 9;
        match self.random {
            None => plain.to_owned(),
            Some(_) => (0..length).map(|_| LETTERS[self.number(0) as usize % LETTERS.len()]).collect(),
        }
    }

    fn hash(&mut self, plain: u8) -> Hash {
        Hash::of(&[&self.number(plain.into()).to_be_bytes()])
    }

    fn small(&mut self, plain: u32) -> u32 {
        self.number(plain.into()) as u32
    }

    fn at(&mut self) -> Timestamp {
        Timestamp(self.number(1_700_000_000_000) as i64)
    }

    fn flag(&mut self) -> bool {
        self.number(self.round as u64).is_multiple_of(2)
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.number(self.round as u64) as usize % choices.len()].clone()
    }

    fn step(&mut self) -> StepId {
        StepId::new(&self.text("charge"))
    }

    fn steps(&mut self) -> Vec<StepId> {
        (0..self.number(2) % 4).map(|_| self.step()).collect()
    }

    fn part(&mut self) -> PartId {
        let step = StepId::new(&format!("s{}", self.small(1)));
        PartId { step, item: self.flag().then(|| self.small(12)) }
    }

    fn tool(&mut self) -> ToolName {
        ToolName::new(&self.text("payments.charge"))
    }

    fn payload(&mut self) -> EventPayload {
        let (text, number) = (self.text("text"), self.number(7));
        let choices: [Value; 4] = [
            json!({ "amount": 12.5, "note": text }),
            json!([number as i64, null, true, f64::from(number as u32) / 3.0]),
            json!(text),
            Value::Null,
        ];
        EventPayload::new(self.pick(&choices))
    }

    fn maybe<T>(&mut self, value: fn(&mut Values) -> T) -> Option<T> {
        self.flag().then(|| value(self))
    }

    fn failure(&mut self) -> ToolFailure {
        let retry_after = self.maybe(|values| Millis(values.number(1_500)));
        ToolFailure { category: self.pick(&FailureCategory::ALL), message: self.text("try later"), retry_after }
    }

    fn then(&mut self) -> AttemptFollowUp {
        let at = self.at();
        self.pick(&[
            AttemptFollowUp::RetryAt(at),
            AttemptFollowUp::FallBack,
            AttemptFollowUp::InDoubt,
            AttemptFollowUp::GiveUp,
        ])
    }

    fn side(&mut self) -> CallSide {
        self.pick(&[CallSide::Do, CallSide::Fallback, CallSide::Undo, CallSide::Probe])
    }

    fn driver(&mut self) -> Driver {
        self.pick(&[Driver::Server, Driver::Agent])
    }

    fn policy(&mut self) -> PolicyAction {
        use PolicyAction::*;
        self.pick(&[ManualDecision, CancelAll, CancelDependent, ContinueOthers, Compensate])
    }

    fn limit(&mut self) -> ExecutionLimit {
        self.pick(&[
            ExecutionLimit::Deadline,
            ExecutionLimit::Calls,
            ExecutionLimit::Cost,
            ExecutionLimit::Time,
            ExecutionLimit::Entries,
        ])
    }

    fn plan(&mut self) -> PlanReference {
        PlanReference { hash: self.hash(1), plan: None }
    }

    fn reason(&mut self) -> String {
        self.text("because")
    }

    fn actor(&mut self) -> Actor {
        let name = self.text("operator");
        self.pick(&[Actor::rutter(), Actor::agent(&name), Actor::person(&name)])
    }

    pub(crate) fn record(&mut self, event: Event) -> EventRecord {
        EventRecord { at: self.at(), actor: self.actor(), event }
    }
}

/// Returns one event of every variant, in the order in which the variants were introduced.
pub(crate) fn events(v: &mut Values) -> Vec<Event> {
    [
        first(v),
        later(v),
        latest(v),
        refusals(v),
        time(v),
        with_policy(v),
        aged(v),
        of_flow(v),
        corrections(v),
        kept_questions(v),
        silences(v),
        partly_expired(v),
        drifts(v),
        pauses(v),
    ]
    .concat()
}

/// The variants of the first golden lines.
fn first(v: &mut Values) -> Vec<Event> {
    [opening(v), approvals(v), attempts(v), doubts(v), controls(v), records(v)].concat()
}

/// The variants that were added later, each after all earlier ones.
fn later(v: &mut Values) -> Vec<Event> {
    vec![
        Event::AttemptAccepted { part: v.part(), side: v.side(), attempt: v.small(1), ticket: v.text("ticket-7") },
        Event::ToolAsked {
            part: v.part(),
            side: v.side(),
            attempt: v.small(1),
            message: v.text("which port?"),
            schema: v.payload(),
            continuation: None,
        },
        Event::ToolAnswered {
            part: v.part(),
            side: v.side(),
            attempt: v.small(1),
            answer: v.maybe(Values::payload),
            reason: v.reason(),
        },
    ]
}

/// The variants that were added after those.
fn latest(v: &mut Values) -> Vec<Event> {
    vec![Event::SettingChanged { setting: v.text("webhook"), id: v.text("hook_1"), change: v.text("created") }]
}

/// A refusal, alone and as a sum.
fn refusals(v: &mut Values) -> Vec<Event> {
    let refused = |v: &mut Values, count| Event::ActRefused {
        act: v.text("approve"),
        execution: v.maybe(|_| ExecutionId::new("exec_1")),
        code: v.text("server.not_allowed"),
        reason: v.reason(),
        count,
    };
    vec![refused(v, 1), refused(v, 7)]
}

/// Holds, and agents that are silent.
fn time(v: &mut Values) -> Vec<Event> {
    use DueKind::*;
    let of_parts = [Attempt, Step, Approval, Retry, Compensation, Probe];
    let mut due: Vec<OverdueTimer> =
        of_parts.into_iter().map(|what| OverdueTimer { what, part: Some(v.part()), at: v.at() }).collect();
    due.extend([Deadline, Time, Agent].map(|what| OverdueTimer { what, part: None, at: v.at() }));
    vec![
        Event::Held { reason: v.reason(), since: v.at(), due, more: v.small(1) },
        Event::HoldEnded { reason: v.reason(), frozen: v.maybe(|v| Millis(v.number(1))), expired: Vec::new() },
        Event::AgentSeen {},
        Event::AgentSilent { since: v.at(), agent: None },
    ]
}

/// The variants and fields of the operator's policy.
fn with_policy(v: &mut Values) -> Vec<Event> {
    vec![
        Event::ApprovalRequested {
            part: v.part(),
            side: v.side(),
            call: v.hash(2),
            tool: v.tool(),
            parameters: v.payload(),
            expires_at: v.at(),
            basis: Some(Box::new(ApprovalBasis {
                digest: v.hash(11),
                keyed: Vec::new(),
                rule: v.maybe(Values::reason),
                by: vec![NamePattern::new(&v.text("finance"))],
                proof: v.maybe(|_| RequiredProof::Credential),
            })),
        },
        Event::CallForbidden {
            part: v.part(),
            side: v.side(),
            call: v.hash(2),
            tool: v.tool(),
            rule: v.maybe(Values::reason),
            reason: v.reason(),
            digest: v.hash(11),
        },
        Event::CallDelayed { part: v.part(), side: v.side(), rule: v.text("policy[1]"), until: v.at(), failure: None },
        Event::ReplanProposed {
            plan: v.plan(),
            revision: v.small(2),
            weakens: vec![v.text("pay: no longer needs approval")],
            reason: v.reason(),
        },
        Event::ReplanRejected { plan: v.hash(9), reason: v.reason() },
        Event::DeviationFound {
            kind: Deviation::Forbidden,
            step: v.maybe(Values::step),
            description: v.text("called it"),
        },
    ]
}

/// Reopening, other branches, and decisions about one item.
fn of_flow(v: &mut Values) -> Vec<Event> {
    let (one, two) = (StepId::new("s1"), StepId::new("s2"));
    vec![
        Event::Reopened { steps: vec![one.clone()], held: vec![two.clone()], reason: v.reason() },
        Event::StepsSkipped { steps: vec![one.clone()], because: SkipReason::ElseOf(two) },
        Event::QuestionAnswered {
            about: Question::Item(PartId { step: one, item: Some(2) }),
            answer: QuestionAnswer::Retry,
            reason: v.reason(),
            result: None,
            evidence: None,
            skipped: Vec::new(),
        },
    ]
}

/// The variants about the age of doubts.
fn aged(v: &mut Values) -> Vec<Event> {
    vec![Event::ProbePostponed { part: v.part(), until: v.at() }, Event::KeyExpired { part: v.part(), side: v.side() }]
}

/// Corrections of what was settled by hand.
fn corrections(v: &mut Values) -> Vec<Event> {
    vec![
        Event::SettlementCorrected {
            part: v.part(),
            side: v.side(),
            attempt: v.small(2),
            happened: v.flag(),
            reason: v.reason(),
            result: v.maybe(Values::payload),
            evidence: v.maybe(Values::payload),
            effect: v.pick(&[None, Some(LateEffect::Only), Some(LateEffect::Second)]),
        },
        Event::DeviationFound {
            kind: Deviation::StaleResult,
            step: v.maybe(Values::step),
            description: v.text("used it"),
        },
    ]
}

/// A question that outlives its process.
fn kept_questions(v: &mut Values) -> Vec<Event> {
    vec![Event::ToolAsked {
        part: v.part(),
        side: v.side(),
        attempt: v.small(1),
        message: v.text("which port?"),
        schema: v.payload(),
        continuation: Some(v.payload()),
    }]
}

/// Returns the events with every choice inside them taken at least once.
pub(crate) fn all_plain() -> Vec<Event> {
    let mut all: Vec<Event> = Vec::new();
    for variants in [
        first,
        later,
        latest,
        refusals,
        time,
        with_policy,
        aged,
        of_flow,
        corrections,
        kept_questions,
        drifts,
        pauses,
        silences,
        partly_expired,
    ] {
        for round in 0..FailureCategory::ALL.len() {
            for event in variants(&mut Values::plain(round)) {
                if !all.contains(&event) {
                    all.push(event);
                }
            }
        }
    }
    all
}

/// What became of calls whose tool had changed.
fn drifts(v: &mut Values) -> Vec<Event> {
    vec![
        Event::AttemptFailed {
            part: v.part(),
            side: v.side(),
            attempt: v.small(1),
            failure: v.failure(),
            maybe: false,
            then: AttemptFollowUp::Withdrawn,
        },
        Event::ToolRestored { tool: v.tool(), definition: v.hash(3) },
    ]
}

/// A call that waits for its server.
fn pauses(v: &mut Values) -> Vec<Event> {
    let (part, side, until, failure) = (v.part(), v.side(), v.at(), Some(v.failure()));
    vec![Event::CallDelayed { part, side, rule: String::new(), until, failure }]
}

/// A hold of which some timers expired.
fn partly_expired(v: &mut Values) -> Vec<Event> {
    let timer = |v: &mut Values| OverdueTimer { what: DueKind::Approval, part: Some(v.part()), at: v.at() };
    let of_all = |v: &mut Values| OverdueTimer { what: DueKind::Deadline, part: None, at: v.at() };
    let expired = vec![timer(v), of_all(v)];
    vec![Event::HoldEnded { reason: v.reason(), frozen: Some(Millis(v.number(1))), expired }]
}

/// Silences of an agent that is known.
fn silences(v: &mut Values) -> Vec<Event> {
    vec![Event::AgentSilent { since: v.at(), agent: Some(Actor::agent(&v.text("pilot"))) }]
}

fn opening(v: &mut Values) -> Vec<Event> {
    let reasons = [SkipReason::NeedsResultOf(v.step()), SkipReason::Condition, SkipReason::LeftUndone];
    vec![
        Event::ExecutionOpened {
            plan: v.plan(),
            revision: v.small(1),
            lineage: v.text("exec_1"),
            driver: v.driver(),
            inputs: v.payload(),
        },
        Event::ExecutionStarted {},
        Event::FanOutOpened { step: v.step(), count: v.small(3), items: v.payload() },
        Event::StepsSkipped { steps: v.steps(), because: v.pick(&reasons) },
    ]
}

fn approvals(v: &mut Values) -> Vec<Event> {
    vec![
        Event::ApprovalRequested {
            part: v.part(),
            side: v.side(),
            call: v.hash(2),
            tool: v.tool(),
            parameters: v.payload(),
            expires_at: v.at(),
            basis: None,
        },
        Event::ApprovalGranted { part: v.part(), call: v.hash(2), reason: v.reason() },
        Event::ApprovalDenied { part: v.part(), call: v.hash(2), reason: v.reason() },
        Event::ApprovalExpired { part: v.part(), call: v.hash(2) },
        Event::ApprovalVoided { part: v.part(), call: v.hash(2), reason: v.reason() },
    ]
}

fn attempts(v: &mut Values) -> Vec<Event> {
    let answers = [LateAnswer::Done(v.payload()), LateAnswer::NotDone(v.failure()), LateAnswer::Maybe(v.failure())];
    vec![
        Event::AttemptStarted {
            part: v.part(),
            side: v.side(),
            attempt: v.small(1),
            by: v.driver(),
            tool: v.tool(),
            definition: v.hash(3),
            call: v.hash(2),
            key: v.hash(4),
            parameters: v.payload(),
            deadline: v.maybe(Values::at),
        },
        Event::AttemptSucceeded {
            part: v.part(),
            side: v.side(),
            attempt: v.small(1),
            result: v.payload(),
            cost_micros: v.number(250),
        },
        Event::AttemptFailed {
            part: v.part(),
            side: v.side(),
            attempt: v.small(1),
            failure: v.failure(),
            maybe: v.flag(),
            then: v.then(),
        },
        Event::AttemptLost { part: v.part(), side: v.side(), attempt: v.small(1), then: v.then() },
        Event::LateAnswerArrived {
            part: v.part(),
            side: v.side(),
            attempt: v.small(1),
            answer: v.pick(&answers),
            cost_micros: v.number(0),
            effect: None,
        },
        Event::PreparationFailed { part: v.part(), side: v.side(), failure: v.failure() },
        Event::RetryAbandoned { part: v.part(), side: v.side(), failure: v.failure() },
    ]
}

fn doubts(v: &mut Values) -> Vec<Event> {
    use QuestionAnswer::*;
    let questions = [Question::Failure(v.step()), Question::Compensation(v.part()), Question::Limit(v.limit())];
    vec![
        Event::ProbeInconclusive { part: v.part(), reason: v.reason() },
        Event::DoubtSettled {
            part: v.part(),
            side: v.side(),
            happened: v.flag(),
            source: v.pick(&[DoubtSource::Probe, DoubtSource::LateAnswer, DoubtSource::Person]),
            reason: v.reason(),
            result: v.maybe(Values::payload),
            evidence: v.maybe(Values::payload),
            then: v.then(),
        },
        Event::FailureHandled {
            step: v.step(),
            action: v.policy(),
            reason: v.reason(),
            cancelled: v.steps(),
            skipped: v.steps(),
        },
        Event::QuestionAnswered {
            about: v.pick(&questions),
            answer: v.pick(&[Retry, Skip, Resolve, Stop, Continue, Compensate, Replan]),
            reason: v.reason(),
            result: v.maybe(Values::payload),
            evidence: v.maybe(Values::payload),
            skipped: v.steps(),
        },
        Event::LimitReached { limit: v.limit(), action: v.policy() },
    ]
}

fn controls(v: &mut Values) -> Vec<Event> {
    vec![
        Event::Paused { reason: v.reason() },
        Event::Resumed { reason: v.reason() },
        Event::CancelRequested { reason: v.reason(), undo: v.flag() },
        Event::Killed { reason: v.reason() },
        Event::CompensationStarted { parts: vec![v.part(), v.part()], whole: v.flag(), reason: v.reason() },
        Event::CompensationRecorded {
            part: v.part(),
            description: v.text("sent it back"),
            evidence: v.maybe(Values::payload),
        },
        Event::ReplanBegun { reason: v.reason() },
        Event::ReplanAbandoned { reason: v.reason() },
        Event::Replanned { plan: v.plan(), revision: v.small(2), reason: v.reason() },
        Event::HandedOver { to: v.driver(), reason: v.reason() },
    ]
}

fn records(v: &mut Values) -> Vec<Event> {
    use Deviation::*;
    let kinds = [Skipped, Duplicate, OutOfOrder, Undeclared, Dangling, Unapproved, OtherTool];
    let ends = [
        ExecutionEnding::Completed,
        ExecutionEnding::Partial,
        ExecutionEnding::Failed,
        ExecutionEnding::Cancelled,
        ExecutionEnding::Compensated,
    ];
    vec![
        Event::ToolDrifted { tool: v.tool(), pinned: v.hash(3), found: v.hash(5) },
        Event::ToolAccepted { tool: v.tool(), definition: v.hash(5), reason: v.reason() },
        Event::DecisionRecorded {
            step: v.maybe(Values::step),
            decision: v.text("ship by sea"),
            reason: v.reason(),
            details: v.maybe(Values::payload),
        },
        Event::ActionRecorded {
            step: v.maybe(Values::step),
            kind: v.text("call"),
            description: v.text("called the port"),
            details: v.maybe(Values::payload),
        },
        Event::ContextSaved { values: v.payload() },
        Event::DeviationFound { kind: v.pick(&kinds), step: v.maybe(Values::step), description: v.text("twice") },
        Event::ExecutionEnded { outcome: v.pick(&ends), reason: v.reason(), remains: vec![v.part()] },
        Event::PlanSaved {
            id: PlanId::new(&v.text("plan_1")),
            revision: v.number(2) as u32,
            plan: v.hash(9),
            name: v.text("order"),
        },
        Event::PayloadsErased {
            execution: ExecutionId::new(&v.text("exec_2")),
            payloads: v.number(3),
            reason: v.reason(),
        },
        Event::ExecutionsRemoved {
            executions: vec![RemovedExecution {
                execution: ExecutionId::new(&v.text("exec_2")),
                entries: v.number(12),
                head: v.hash(10),
            }],
            reason: v.reason(),
        },
        Event::LedgerRestored { origin: v.text("rutter/1"), size: v.number(100), reason: v.reason() },
    ]
}
