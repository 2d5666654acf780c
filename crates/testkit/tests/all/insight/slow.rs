//! The same counts computed another way: by replaying each execution and comparing its state before and after.

use rutter_core::execution::part::PartState;
use rutter_core::execution::step::StepStage;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::execution::{Execution, ExecutionIdentity, ExecutionPhase};
use rutter_core::id::{ExecutionId, PartId, TenantId};
use rutter_core::insight::tally::{ActivityTally, WaitCause};
use rutter_core::journal::event::{AttemptFollowUp, CallSide, Event, EventRecord, Question, QuestionAnswer};
use rutter_core::time::Timestamp;
use rutter_core::tool::FailureCategory;
use std::collections::{BTreeMap, BTreeSet};

pub fn tally(execution: &ExecutionId, records: &[EventRecord]) -> ActivityTally {
    let mut tally = ActivityTally::default();
    for record in records {
        count(&mut tally, &record.event);
    }
    ends(&mut tally, records);
    attempts(&mut tally, records);
    states(&mut tally, execution, records);
    tally
}

fn count(tally: &mut ActivityTally, event: &Event) {
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
        Event::CallForbidden { .. } => *tally.failures.entry(FailureCategory::Unauthorized).or_default() += 1,
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

fn ends(tally: &mut ActivityTally, records: &[EventRecord]) {
    let ended = |record: &&EventRecord| matches!(record.event, Event::ExecutionEnded { .. });
    let all = records.iter().filter(ended).count() as u64;
    tally.ended_again = all.saturating_sub(1);
    let Some(first) = records.iter().position(|record| ended(&record)) else { return };
    if let Event::ExecutionEnded { outcome, .. } = &records[first].event {
        *tally.ended.of(*outcome) += 1;
    }
    tally.duration_ms.record(records[first].at.since(records[0].at).0);
    let begun = records[..first]
        .iter()
        .filter(|record| matches!(record.event, Event::AttemptStarted { side: CallSide::Do, attempt: 1, .. }));
    tally.steps.record(begun.count() as u64);
}

/// Each attempt with the event that closed it.
fn attempts(tally: &mut ActivityTally, records: &[EventRecord]) {
    for (at, record) in records.iter().enumerate() {
        let Event::AttemptStarted { part, side, attempt, .. } = &record.event else { continue };
        *tally.attempts.entry(*side).or_default() += 1;
        tally.retries += u64::from(*attempt > 1 && *side != CallSide::Probe);
        let closed = records[at..].iter().find(|later| match &later.event {
            Event::AttemptSucceeded { part: p, side: s, attempt: a, .. }
            | Event::AttemptFailed { part: p, side: s, attempt: a, .. }
            | Event::AttemptLost { part: p, side: s, attempt: a, .. } => (p, s, a) == (part, side, attempt),
            Event::Killed { .. } => true,
            _ => false,
        });
        let answered = closed
            .filter(|closed| matches!(closed.event, Event::AttemptSucceeded { .. } | Event::AttemptFailed { .. }));
        if let Some(answered) = answered {
            tally.attempt_ms.record(answered.at.since(record.at).0);
        }
    }
}

type Key = (WaitCause, String);

/// What can only be found by comparing the state before an entry with the state after it.
fn states(tally: &mut ActivityTally, execution: &ExecutionId, records: &[EventRecord]) {
    let identity = ExecutionIdentity { tenant: TenantId::new("sim"), execution: execution.clone() };
    let mut now = Execution::open(identity, &records[0]).unwrap();
    let (mut since, mut replanning) = (BTreeMap::<Key, Timestamp>::new(), false);
    // Parts interrupted by a new plan begin again, whatever their history.
    let mut begun = BTreeMap::<PartId, Timestamp>::new();
    for record in &records[1..] {
        let before = now.clone();
        now.apply(record).unwrap();
        match &record.event {
            Event::ReplanBegun { .. } => replanning = true,
            Event::QuestionAnswered {
                about: Question::Failure(_) | Question::Limit(_),
                answer: QuestionAnswer::Replan,
                ..
            } => replanning = true,
            Event::ReplanAbandoned { .. } | Event::ReplanProposed { .. } | Event::Replanned { .. } => {
                replanning = false;
            }
            _ => {}
        }
        replanning &= *now.phase() == ExecutionPhase::Forward;
        let (old, new) = (waits(&before, false), waits(&now, replanning));
        since.retain(|key, since| {
            let interrupted = matches!(record.event, Event::Replanned { .. }) && matches!(key.0, WaitCause::BackOff);
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
    if !matches!(execution.phase(), ExecutionPhase::Forward | ExecutionPhase::Draining { .. } | ExecutionPhase::Undoing)
    {
        return waits;
    }
    for (id, part) in execution.parts() {
        let cause = match &part.state {
            PartState::Asking { .. } => Some(WaitCause::Approval),
            PartState::BackingOff { .. } => Some(WaitCause::BackOff),
            PartState::InDoubt { .. } => Some(WaitCause::Doubt),
            PartState::CompensationFailed { accepted: false, .. } => Some(WaitCause::Compensation),
            _ => None,
        };
        waits.extend(cause.map(|cause| (cause, id.to_string())));
        if part.running().is_some_and(|attempt| attempt.inquiry.is_some()) {
            waits.insert((WaitCause::ToolQuestion, id.to_string()));
        }
    }
    let held = execution.stages().filter(|(_, stage)| *stage == StepStage::Held);
    waits.extend(held.map(|(step, _)| (WaitCause::Failure, step.to_string())));
    for ask in execution.questions() {
        match ask {
            PendingQuestion::Limit { .. } => waits.insert((WaitCause::Limit, String::new())),
            PendingQuestion::Drift { tool, .. } => waits.insert((WaitCause::Drift, tool.to_string())),
            _ => false,
        };
    }
    waits.extend(execution.is_paused().then(|| (WaitCause::Paused, String::new())));
    waits.extend(replanning.then(|| (WaitCause::Replanning, String::new())));
    waits
}

/// A backoff follows an attempt that did not succeed; other waits are not backoffs. An undo that failed before another one began is not
/// asked about again.
fn begins(cause: WaitCause, event: &Event) -> bool {
    match cause {
        WaitCause::BackOff => {
            let is_withdrawn = matches!(event, Event::AttemptFailed { then: AttemptFollowUp::Withdrawn, .. });
            !is_withdrawn
                && matches!(
                    event,
                    Event::AttemptFailed { .. }
                        | Event::AttemptLost { .. }
                        | Event::DoubtSettled { happened: false, .. }
                )
        }
        WaitCause::Compensation | WaitCause::Doubt => {
            !matches!(event, Event::CompensationStarted { .. } | Event::Reopened { .. })
        }
        _ => true,
    }
}

fn parts(
    tally: &mut ActivityTally,
    before: &Execution,
    now: &Execution,
    record: &EventRecord,
    begun: &mut BTreeMap<PartId, Timestamp>,
) {
    if let Event::AttemptStarted { part, side: CallSide::Do | CallSide::Fallback, .. } = &record.event {
        begun.entry(part.clone()).or_insert(record.at);
    }
    if let Event::AttemptFailed { part, side: CallSide::Do | CallSide::Fallback, then, .. } = &record.event
        && *then == AttemptFollowUp::Withdrawn
    {
        begun.remove(part);
    }
    if let Event::AttemptFailed {
        side: CallSide::Do | CallSide::Fallback | CallSide::Undo,
        then: AttemptFollowUp::InDoubt,
        ..
    }
    | Event::AttemptLost {
        side: CallSide::Do | CallSide::Fallback | CallSide::Undo,
        then: AttemptFollowUp::InDoubt,
        ..
    }
    | Event::KeyExpired { .. } = &record.event
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
                // A part that was under way at a kill and is settled later has no time of its own.
                if let Some(since) = begun.get(&id) {
                    tally.step_ms.record(record.at.since(*since).0);
                }
            }
            (PartState::Compensated { .. }, _) => tally.compensated += 1,
            (PartState::CompensationFailed { accepted: false, .. }, _) => tally.compensations_failed += 1,
            _ => {}
        }
    }
    // One of two effects is undone, and the other is next.
    if let Event::AttemptSucceeded { part, side: CallSide::Undo, .. }
    | Event::DoubtSettled { part, side: CallSide::Undo, happened: true, .. } = &record.event
        && now.part(part).is_some_and(|part| !matches!(part.state, PartState::Compensated { .. }))
    {
        tally.compensated += 1;
    }
    if matches!(record.event, Event::Killed { .. }) {
        begun.clear();
    }
    // Settled parts, or those waiting after a new plan, begin again the next time.
    let replanned = matches!(record.event, Event::Replanned { .. });
    begun.retain(|id, _| match now.part(id).map(|part| &part.state) {
        Some(PartState::Running(_) | PartState::InDoubt { .. }) => true,
        Some(PartState::Asking { .. } | PartState::Approved { .. } | PartState::BackingOff { .. }) => !replanned,
        _ => false,
    });
}
