//! The open questions of an execution, derived from its state.

use super::Execution;
use super::agenda::PartPosition;
use super::part::{PartState, ProbeProgress, StepPart};
use super::view::{PendingQuestion, SurpriseKind};
use crate::hash::Hash;
use crate::id::PartId;
use crate::journal::event::{CallSide, LateAnswer, NO_PROBE, Question};
use crate::plan::diff::diff;
use crate::plan::{Driver, Plan};
use crate::text::{cut, escape_hidden};

/// The length of what an agent recorded, in a question.
const REPORT_CHARS_MAX: usize = 160;

impl Execution {
    pub(super) fn has_questions(&self) -> bool {
        let agenda = &self.agenda;
        let doubts = agenda.doubts.iter().any(|at| self.needs_a_word(*at));
        doubts
            || !agenda.asking.is_empty()
            || !agenda.inquiring.is_empty()
            || !agenda.second.is_empty()
            || !agenda.stuck.is_empty()
            || !agenda.held.is_empty()
            || self.over.is_some()
            || self.proposal.is_some()
            || !self.drifted.is_empty()
    }

    /// All open questions, in a fixed order.
    pub fn questions(&self) -> Vec<PendingQuestion> {
        let agenda = &self.agenda;
        let doubts = agenda.doubts.iter().filter(|at| self.needs_a_word(**at));
        let mut asks: Vec<PendingQuestion> = doubts.filter_map(|at| self.ask_doubt(*at)).collect();
        asks.extend(agenda.second.iter().filter_map(|at| self.ask_second(*at)));
        let proposal = self.proposal.as_ref().map(|proposal| PendingQuestion::Replan {
            plan: proposal.plan.hash,
            revision: proposal.revision,
            weakens: proposal.weakens.clone(),
            changes: self.changes_of(&proposal.plan),
            reason: proposal.reason.clone(),
            proof: self.proof_about_plans(),
        });
        if self.outcome().is_some() {
            asks.extend(proposal);
            return asks;
        }
        asks.extend(self.held.clone().map(|hold| PendingQuestion::Hold {
            reason: hold.reason,
            since: hold.since,
            due: hold.due,
            more: hold.more,
        }));
        asks.extend(self.ask_silence());
        asks.extend(agenda.asking.iter().filter_map(|at| self.ask_approval(*at)));
        asks.extend(agenda.inquiring.iter().filter_map(|at| self.ask_of_tool(*at)));
        asks.extend(agenda.held.iter().map(|step| self.ask_failure(*step)));
        asks.extend(agenda.stuck.iter().filter_map(|at| self.ask_compensation(*at)));
        asks.extend(self.over.map(|limit| PendingQuestion::Limit { limit, answers: Question::LIMIT_ANSWERS }));
        asks.extend(proposal);
        asks.extend(self.drifted.iter().map(|(tool, found)| PendingQuestion::Drift {
            tool: tool.clone(),
            pinned: self.definition(tool),
            found: *found,
        }));
        asks
    }

    /// What a proposed plan changes. Steps that are only kept to be undone are no part of the present one.
    fn changes_of(&self, new: &Plan) -> Vec<String> {
        let mut diff = diff(&self.plan, new);
        diff.removed.retain(|step| self.plan.find(step.as_str()).is_some_and(|at| !self.steps[at].retired));
        diff.lines()
    }

    /// Whether a doubt is not being probed: the probe is exhausted or its tool changed, or an agent drives.
    fn needs_a_word(&self, at: PartPosition) -> bool {
        let Some(PartState::InDoubt { probing, .. }) = self.part_at(at).map(|part| &part.state) else {
            return false;
        };
        match probing {
            ProbeProgress::Exhausted { .. } => true,
            ProbeProgress::NotYet | ProbeProgress::BackingOff { .. } => {
                self.driver == Driver::Agent || self.is_drifted(at, CallSide::Probe)
            }
            ProbeProgress::Running(_) | ProbeProgress::Answered { .. } => false,
        }
    }

    fn ask_approval(&self, at: PartPosition) -> Option<PendingQuestion> {
        let part = self.part_at(at)?;
        let PartState::Asking { side, call, expires_at } = part.state else { return None };
        let basis = part.asked.as_ref().map(|asked| &asked.basis);
        let denied = basis.and_then(|basis| self.earlier_denial(&basis.digest));
        let basis = basis.map(|basis| (basis.rule.clone(), basis.by.clone(), basis.proof));
        let (rule, by, proof) = basis.unwrap_or_default();
        let prepared = self.prepare(at, side).ok().filter(|prepared| prepared.hash == call);
        let planned = self.call_of(at, side)?;
        let (tool, sends) = (planned.tool.clone(), planned.retry.max_attempts);
        let parameters = prepared.map(|prepared| prepared.parameters);
        let part = self.name(at);
        Some(PendingQuestion::Approval { part, call, tool, parameters, expires_at, sends, rule, by, proof, denied })
    }

    fn ask_doubt(&self, at: PartPosition) -> Option<PendingQuestion> {
        let part = self.part_at(at)?;
        let PartState::InDoubt { side, attempt, since, probing, failure } = &part.state else { return None };
        let mut reason = match probing {
            ProbeProgress::Exhausted { reason } => reason.clone(),
            _ if self.probe_of(at).is_none() => NO_PROBE.to_owned(),
            _ => "it was not probed, and Rutter may not call the probe now".to_owned(),
        };
        let keyed = self.call_of(at, *side).filter(|call| call.keyed);
        if keyed.is_some_and(|call| part.key_since.is_some_and(|first| first.plus(call.key_window) <= *since)) {
            reason.push_str("; it is not sent again, because the tool may have forgotten its key");
        }
        if part.was_asking {
            reason.push_str("; the tool was asking a question when the call was lost");
        }
        let sent = part.call(*side, *attempt);
        if let Some(report) = part.reported.as_deref().filter(|_| sent.is_some_and(|sent| sent.by == Driver::Agent)) {
            reason.push_str(&format!("; the agent that made the call recorded {}", report_words(report)));
        }
        Some(PendingQuestion::Doubt {
            part: self.name(at),
            side: *side,
            attempt: *attempt,
            tool: self.call_of(at, *side).map(|call| call.tool.clone()),
            parameters: sent.and_then(|sent| sent.parameters.value().cloned()),
            key: sent.map(|sent| sent.key).filter(|key| *key != Hash::ZERO),
            sent_at: sent.map(|sent| sent.sent_at),
            reason,
            failure: failure.clone(),
        })
    }

    fn ask_failure(&self, step: usize) -> PendingQuestion {
        let state = &self.steps[step];
        let failed = |(item, part): (usize, &StepPart)| match &part.state {
            PartState::Failed { failure } if !part.accepted => {
                Some((self.name(PartPosition::new(step, item)), failure.clone()))
            }
            _ => None,
        };
        let mut failures: Vec<_> = state.parts.iter().enumerate().filter_map(failed).collect();
        let id = self.plan.steps[step].id.clone();
        failures.extend(state.failure.clone().map(|failure| (PartId::whole(id.clone()), failure)));
        let parts: Vec<&StepPart> = state.parts.iter().collect();
        let proof = self.proof_about(&parts);
        let only_people = self.only_people_answer(&id);
        PendingQuestion::Failure { step: id, failures, answers: Question::FAILURE_ANSWERS, proof, only_people }
    }

    fn ask_compensation(&self, at: PartPosition) -> Option<PendingQuestion> {
        let PartState::CompensationFailed { failure, .. } = &self.part_at(at)?.state else { return None };
        let answers = Question::COMPENSATION_ANSWERS;
        Some(PendingQuestion::Compensation { part: self.name(at), failure: failure.clone(), answers })
    }
}

/// What an agent said of its own call in doubt: its word, not the tool's.
fn report_words(report: &LateAnswer) -> String {
    match report {
        LateAnswer::Done(result) => {
            let result = result.value().map_or_else(|| "erased".to_owned(), ToString::to_string);
            format!("that it was done, with the result {}", escape_hidden(&cut(&result, REPORT_CHARS_MAX)))
        }
        LateAnswer::NotDone(failure) => format!("that it failed: {}", failure.quoted(REPORT_CHARS_MAX)),
        LateAnswer::Maybe(failure) => format!("that it may have happened: {}", failure.quoted(REPORT_CHARS_MAX)),
    }
}

impl PendingQuestion {
    /// The only item of a fan-out that failed and is asked about.
    pub fn failed_item(&self) -> Option<&PartId> {
        match self {
            PendingQuestion::Failure { failures, .. } => match failures.as_slice() {
                [(part, _)] => Some(part).filter(|part| part.item.is_some()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether its sentence begins with the name of a step or a person.
    pub fn begins_with_name(&self) -> bool {
        match self {
            PendingQuestion::SecondEffect { surprise, .. } => *surprise != SurpriseKind::OtherResult,
            PendingQuestion::Failure { .. } => true,
            PendingQuestion::Approval { by, .. } => !by.is_empty(),
            _ => false,
        }
    }
}
