//! The same counts found another way: by replaying each execution and looking at its state before and after.

use rutter_core::execution::part::PartState;
use rutter_core::execution::step::Stage;
use rutter_core::execution::view::Ask;
use rutter_core::execution::{Execution, Identity, Phase};
use rutter_core::id::{ExecutionId, PartId, TenantId};
use rutter_core::insight::tally::{Cause, Tally};
use rutter_core::journal::event::{Answer, Event, Question, Record, Side, Then};
use rutter_core::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

pub fn tally(execution: &ExecutionId, records: &[Record]) -> Tally {
    let mut tally = Tally::default();
    for record in records {
        count(&mut tally, &record.event);
    }
    ends(&mut tally, records);
    attempts(&mut tally, records);
    states(&mut tally, execution, records);
    tally
}

fn count(tally: &mut Tally, event: &Event) {
    match event {
        Event::ExecutionOpened { .. } => tally.opened += 1,
        Event::StepsSkipped { steps: skipped, .. } => tally.steps_skipped += skipped.len() as u64,
        Event::FailureHandled { skipped, .. } => {
            tally.steps_failed += 1;
            tally.steps_skipped += skipped.len() as u64;
        }
        Event::QuestionAnswered { skipped, .. } => tally.steps_skipped += skipped.len() as u64,
        Event::ApprovalRequested { .. } => tally.approvals.asked += 1,
        Event::ApprovalGranted { .. } => tally.approvals.granted += 1,
        Event::ApprovalDenied { .. } => tally.approvals.denied += 1,
        Event::ApprovalExpired { .. } => tally.approvals.expired += 1,
        Event::ApprovalVoided { .. } => tally.approvals.voided += 1,
        Event::AttemptSucceeded { cost_micros, .. } => {
            tally.succeeded += 1;
            tally.cost_micros += cost_micros;
        }
        Event::AttemptFailed { failure, .. } | Event::PreparationFailed { failure, .. } => {
            *tally.failures.entry(failure.category).or_default() += 1;
        }
        Event::AttemptLost { .. } => tally.lost += 1,
        Event::LateAnswerArrived { cost_micros, .. } => {
            tally.late_answers += 1;
            tally.cost_micros += cost_micros;
        }
        Event::LimitReached { limit, .. } => *tally.limits.entry(*limit).or_default() += 1,
        Event::CompensationStarted { .. } => tally.compensations += 1,
        Event::Replanned { .. } => tally.replans += 1,
        Event::HandedOver { .. } => tally.handovers += 1,
        Event::ToolDrifted { .. } => tally.drifts += 1,
        Event::DecisionRecorded { .. } => tally.decisions += 1,
        Event::ActionRecorded { .. } => tally.actions += 1,
        Event::DeviationFound { kind, .. } => *tally.deviations.entry(*kind).or_default() += 1,
        _ => {}
    }
}

fn ends(tally: &mut Tally, records: &[Record]) {
    let ended = |record: &&Record| matches!(record.event, Event::ExecutionEnded { .. });
    let all = records.iter().filter(ended).count() as u64;
    tally.ended_again = all.saturating_sub(1);
    let Some(first) = records.iter().position(|record| ended(&record)) else { return };
    if let Event::ExecutionEnded { outcome, .. } = &records[first].event {
        *tally.ended.of(*outcome) += 1;
    }
    tally.duration_ms.record(records[first].at.since(records[0].at).0);
    let begun = records[..first]
        .iter()
        .filter(|record| matches!(record.event, Event::AttemptStarted { side: Side::Do, attempt: 1, .. }));
    tally.steps.record(begun.count() as u64);
}

/// Each attempt with what closed it.
fn attempts(tally: &mut Tally, records: &[Record]) {
    for (at, record) in records.iter().enumerate() {
        let Event::AttemptStarted { part, side, attempt, .. } = &record.event else { continue };
        *tally.attempts.entry(*side).or_default() += 1;
        tally.retries += u64::from(*attempt > 1 && *side != Side::Probe);
        let closed = records[at..].iter().find(|later| match &later.event {
            Event::AttemptSucceeded { part: p, side: s, attempt: a, .. }
            | Event::AttemptFailed { part: p, side: s, attempt: a, .. }
            | Event::AttemptLost { part: p, side: s, attempt: a, .. } => (p, s, a) == (part, side, attempt),
            Event::Killed { .. } => true,
            _ => false,
        });
        let answered = closed.filter(|closed| {
            matches!(closed.event, Event::AttemptSucceeded { .. } | Event::AttemptFailed { .. })
        });
        if let Some(answered) = answered {
            tally.attempt_ms.record(answered.at.since(record.at).0);
        }
    }
}

type Key = (Cause, String);

/// What is seen only by comparing the state before an entry with the state after it.
fn states(tally: &mut Tally, execution: &ExecutionId, records: &[Record]) {
    let identity = Identity { tenant: TenantId::new("sim"), execution: execution.clone() };
    let mut now = Execution::open(identity, &records[0]).unwrap();
    let (mut since, mut replanning) = (BTreeMap::<Key, Timestamp>::new(), false);
    // Parts whose way to completion was interrupted by a new plan begin anew, whatever they remember.
    let mut begun = BTreeMap::<PartId, Timestamp>::new();
    for record in &records[1..] {
        let before = now.clone();
        now.apply(record).unwrap();
        match &record.event {
            Event::ReplanBegun { .. } => replanning = true,
            Event::QuestionAnswered {
                about: Question::Failure(_) | Question::Limit(_),
                answer: Answer::Replan,
                ..
            } => replanning = true,
            Event::ReplanAbandoned { .. } | Event::Replanned { .. } => replanning = false,
            _ => {}
        }
        replanning &= *now.phase() == Phase::Forward;
        let (old, new) = (waits(&before, false), waits(&now, replanning));
        since.retain(|key, since| {
            let interrupted =
                matches!(record.event, Event::Replanned { .. }) && matches!(key.0, Cause::BackOff);
            let goes_on = new.contains(key) && !interrupted;
            if !goes_on {
                tally.waits_ms.entry(key.0).or_default().record(record.at.since(*since).0);
            }
            goes_on
        });
        for key in new.difference(&old).filter(|key| begins(key.0, &record.event)) {
            since.entry(key.clone()).or_insert(record.at);
        }
        parts(tally, &before, &now, record, &mut begun);
    }
}

fn waits(execution: &Execution, replanning: bool) -> BTreeSet<Key> {
    let mut waits = BTreeSet::new();
    if !matches!(execution.phase(), Phase::Forward | Phase::Draining { .. } | Phase::Undoing) {
        return waits;
    }
    for (id, part) in execution.parts() {
        let cause = match &part.state {
            PartState::Asking { .. } => Some(Cause::Approval),
            PartState::BackingOff { .. } => Some(Cause::BackOff),
            PartState::InDoubt { .. } => Some(Cause::Doubt),
            PartState::CompensationFailed { accepted: false, .. } => Some(Cause::Compensation),
            _ => None,
        };
        waits.extend(cause.map(|cause| (cause, id.to_string())));
        if part.running().is_some_and(|attempt| attempt.inquiry.is_some()) {
            waits.insert((Cause::ToolQuestion, id.to_string()));
        }
    }
    let held = execution.stages().filter(|(_, stage)| *stage == Stage::Held);
    waits.extend(held.map(|(step, _)| (Cause::Failure, step.to_string())));
    for ask in execution.questions() {
        match ask {
            Ask::Limit { .. } => waits.insert((Cause::Limit, String::new())),
            Ask::Drift { tool, .. } => waits.insert((Cause::Drift, tool.to_string())),
            _ => false,
        };
    }
    waits.extend(execution.is_paused().then(|| (Cause::Paused, String::new())));
    waits.extend(replanning.then(|| (Cause::Replanning, String::new())));
    waits
}

/// A back-off follows an attempt; what else makes a part wait for its turn is none. An undoing that failed before
/// another one began is not asked about anew.
fn begins(cause: Cause, event: &Event) -> bool {
    match cause {
        Cause::BackOff => matches!(
            event,
            Event::AttemptFailed { .. } | Event::AttemptLost { .. } | Event::DoubtSettled { .. }
        ),
        Cause::Compensation | Cause::Doubt => !matches!(event, Event::CompensationStarted { .. }),
        _ => true,
    }
}

fn parts(
    tally: &mut Tally,
    before: &Execution,
    now: &Execution,
    record: &Record,
    begun: &mut BTreeMap<PartId, Timestamp>,
) {
    if let Event::AttemptStarted { part, side: Side::Do | Side::Fallback, .. } = &record.event {
        begun.entry(part.clone()).or_insert(record.at);
    }
    if let Event::AttemptFailed {
        side: Side::Do | Side::Fallback | Side::Undo, then: Then::InDoubt, ..
    }
    | Event::AttemptLost { side: Side::Do | Side::Fallback | Side::Undo, then: Then::InDoubt, .. } =
        &record.event
    {
        tally.doubts += 1;
    }
    for (id, part) in now.parts() {
        let was = before.part(&id).map(|part| &part.state);
        if was == Some(&part.state) {
            continue;
        }
        match (&part.state, was) {
            (PartState::Completed { by_hand: false }, _) => {
                let since = begun.get(&id).copied();
                let since = since.or(part.began_at);
                tally.step_ms.record(record.at.since(since.unwrap()).0);
            }
            (PartState::Compensated { .. }, _) => tally.compensated += 1,
            (PartState::CompensationFailed { accepted: false, .. }, _) => tally.compensations_failed += 1,
            _ => {}
        }
    }
    // What is at rest, or waits for its turn after a new plan, begins anew the next time.
    let replanned = matches!(record.event, Event::Replanned { .. });
    begun.retain(|id, _| match now.part(id).map(|part| &part.state) {
        Some(PartState::Running(_) | PartState::InDoubt { .. }) => true,
        Some(PartState::Asking { .. } | PartState::Approved { .. } | PartState::BackingOff { .. }) => {
            !replanned
        }
        _ => false,
    });
}
