//! Who may decide: about a call that people or the policy did not allow, and in the place of those who said no.

use super::Execution;
use super::admit::AdmissionResult;
use super::denial::is_contested;
use super::input::Refusal;
use super::part::{AskedCall, PartRefusal, RefusalKind, StepPart};
use crate::actor::{Actor, ActorKind, RequiredProof};
use crate::hash::Hash;
use crate::id::{PartId, StepId};
use crate::journal::event::{ApprovalBasis, Question, QuestionAnswer};
use crate::policy::may_approve;
use crate::tool::FailureCategory;

impl Execution {
    fn parts_about(&self, about: &Question) -> Vec<&StepPart> {
        match about {
            Question::Failure(step) => {
                self.plan.find(step.as_str()).map(|step| self.steps[step].parts.iter().collect()).unwrap_or_default()
            }
            Question::Compensation(part) | Question::Item(part) => self.part(part).into_iter().collect(),
            Question::Limit(_) | Question::SecondEffect(_) | Question::Silence => Vec::new(),
        }
    }

    pub(super) fn refusals_of(&self, about: &Question) -> impl Iterator<Item = PartRefusal> {
        self.parts_about(about).into_iter().filter_map(|part| part.refused)
    }

    /// Only a person may say that a step is done which a person or the policy did not allow, or which may have happened.
    pub(super) fn admit_resolving(&self, actor: &Actor, about: &Question) -> AdmissionResult {
        if actor.party == ActorKind::Person {
            return self.admit_proof(actor, &self.parts_about(about));
        }
        let not_allowed = |message: String| {
            Err(Refusal::new("execution.not_a_person", message).hint("a person must decide; skip it, stop, or wait"))
        };
        if let Some(refusal) = self.refusals_of(about).next() {
            let why = match refusal.kind {
                RefusalKind::Denied => "was denied",
                RefusalKind::Expired => "was not approved in time",
                RefusalKind::Forbidden => "is forbidden by the operator's policy",
                RefusalKind::Unjudged => "the operator's policy may be about",
            };
            return not_allowed(format!("only a person may resolve a step whose call {why}"));
        }
        if let Question::Failure(step) = about
            && self.is_unjudged(step)
        {
            return not_allowed(
                "only a person may resolve a step whose call the operator's policy may be about".to_owned(),
            );
        }
        if let Question::Failure(step) | Question::Item(PartId { step, .. }) = about
            && self.lacks_approval(step, &self.parts_about(about))
        {
            return not_allowed("only a person may resolve a step that needs approval and has none".to_owned());
        }
        let is_doubtful = |part: &&StepPart| part.effect.is_some_and(|effect| !effect.certain);
        let is_of_forward = !matches!(about, Question::Compensation(_));
        match self.parts_about(about).into_iter().find(is_doubtful).filter(|_| is_of_forward).is_some() {
            true => not_allowed("only a person may resolve a step that may have taken effect".to_owned()),
            false => Ok(()),
        }
    }

    /// Whether the step failed before it had a part, and a rule may be about its call.
    fn is_unjudged(&self, step: &StepId) -> bool {
        let failure = self.plan.find(step.as_str()).and_then(|at| self.steps[at].failure.as_ref());
        failure.is_some_and(|failure| failure.category == FailureCategory::Unauthorized)
    }

    /// Only a person goes on past a step that a person did not allow, where other steps wait for it.
    pub(super) fn admit_going_past(&self, actor: &Actor, about: &Question) -> AdmissionResult {
        let (Question::Failure(step) | Question::Item(PartId { step, .. })) = about else { return Ok(()) };
        match actor.party {
            ActorKind::Person => self.admit_proof(actor, &self.parts_about(about)),
            ActorKind::Agent | ActorKind::Rutter => self.admit_passing(step, &self.parts_about(about)),
        }
    }

    /// The answers about a failed step that are refused from an agent.
    pub(super) fn only_people_answer(&self, step: &StepId) -> Vec<QuestionAnswer> {
        let (agent, about) = (Actor::agent("agent"), Question::Failure(step.clone()));
        let is_refused = |answer: &&QuestionAnswer| match answer {
            QuestionAnswer::Skip | QuestionAnswer::Continue => self.admit_going_past(&agent, &about).is_err(),
            QuestionAnswer::Resolve => self.admit_resolving(&agent, &about).is_err(),
            _ => false,
        };
        Question::FAILURE_ANSWERS.iter().filter(is_refused).copied().collect()
    }

    /// Refuses a person who is vouched for by a program only, where a person with a credential said no, or a rule names
    /// who decides or asks for a credential.
    fn admit_proof(&self, actor: &Actor, parts: &[&StepPart]) -> AdmissionResult {
        match self.proof_about(parts) {
            required if actor.satisfies(required) => Ok(()),
            _ => Err(not_proven("a person with a credential of their own decides about this step")),
        }
    }

    /// The proof that a decision about these parts asks for.
    pub(super) fn proof_about(&self, parts: &[&StepPart]) -> Option<RequiredProof> {
        let is_proven_no = |digest: &Hash| self.denied.get(digest).is_some_and(|denied| denied.is_proven);
        let is_ruled = |basis: &ApprovalBasis| basis.proof.is_some() || !basis.by.is_empty();
        let asks = |part: &&StepPart| {
            let refused = part.refused.and_then(|refusal| refusal.digest);
            refused.as_ref().is_some_and(is_proven_no)
                || (is_contested(part)
                    && part.asked.as_deref().is_some_and(|it| is_ruled(&it.basis) || is_proven_no(&it.basis.digest)))
        };
        parts.iter().any(asks).then_some(RequiredProof::Credential)
    }

    /// The proof that a decision about a new plan asks for. It can take away what any step waits for.
    pub(super) fn proof_about_plans(&self) -> Option<RequiredProof> {
        let parts: Vec<&StepPart> = self.steps.iter().flat_map(|state| &state.parts).collect();
        let is_denied = self.denied.values().any(|denied| denied.is_proven);
        self.proof_about(&parts).or(is_denied.then_some(RequiredProof::Credential))
    }

    /// Refuses a new plan that only a program says a person wants, where a credential decides.
    pub(super) fn admit_proof_for_plan(&self, actor: &Actor) -> AdmissionResult {
        match actor.satisfies(self.proof_about_plans()) {
            true => Ok(()),
            false => Err(not_proven("a person with a credential of their own decides about a step of this plan")),
        }
    }

    /// An agent cannot make the server go on from a step that the agent recorded against a person's word.
    pub(super) fn admit_handing_back(&self, actor: &Actor) -> AdmissionResult {
        match self.defied.keys().next() {
            Some(step) if actor.party != ActorKind::Person => Err(Refusal::new(
                "execution.not_a_person",
                format!("only a person may hand this execution over: {step:?} was done without the approval it needs"),
            )),
            _ => Ok(()),
        }
    }

    /// Only the people whom the rule names may approve, with the proof that it demands.
    pub(super) fn admit_approver(&self, actor: &Actor, part: &StepPart) -> AdmissionResult {
        let Some(AskedCall { basis, .. }) = part.asked.as_deref() else { return Ok(()) };
        if self.denied.get(&basis.digest).is_some_and(|denied| denied.is_proven) && !actor.is_proven() {
            return Err(not_proven("a person with a credential of their own denied this call"));
        }
        let rule = basis.rule.as_deref().unwrap_or("the policy");
        if !actor.satisfies(basis.proof) {
            return Err(not_proven(&format!("{rule} asks for a person's own credential")));
        }
        if basis.by.is_empty() || may_approve(&basis.by, actor) {
            return Ok(());
        }
        let names: Vec<&str> = basis.by.iter().map(|name| name.as_str()).collect();
        Err(Refusal::new(
            "execution.not_the_approver",
            format!("{rule} asks for the approval of {}", names.join(" or ")),
        ))
    }
}

fn not_proven(why: &str) -> Refusal {
    Refusal::new("execution.not_proven", format!("{why}; an answer at a client does not count"))
        .hint("decide on the page of the execution, or with the command line")
}
