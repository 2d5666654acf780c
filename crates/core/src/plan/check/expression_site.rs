//! Every expression of a step, with its position, which determines what it may read.

use super::call_site::{CallPurpose, CallSite, sites};
use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::plan::Step;
use crate::plan::draft::{PlanDraft, StepDraft};
use crate::plan::expression::Expression;
use serde_json::Value;

/// The role of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpressionRole {
    /// `when`.
    Condition,
    /// The list of `for_each`.
    Items,
    /// In the parameters of a call.
    Parameters(CallPurpose),
    /// `happened` and `result` of a probe.
    Verdict,
}

impl ExpressionRole {
    /// Whether the step cannot start before it is evaluated.
    pub(super) fn is_forward(self) -> bool {
        match self {
            ExpressionRole::Condition | ExpressionRole::Items | ExpressionRole::Parameters(CallPurpose::Effect) => true,
            ExpressionRole::Parameters(_) | ExpressionRole::Verdict => false,
        }
    }
}

/// An expression and its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpressionSite<'a> {
    pub(super) role: ExpressionRole,
    pub(super) expression: &'a Expression,
    /// The call it belongs to; for a condition or a list, the step's own.
    pub(super) site: CallSite<'a>,
    base: &'a str,
    field: &'static str,
    inside: &'a str,
}

impl ExpressionSite<'_> {
    /// Whether it decides something, and must be true or false.
    pub(super) fn is_condition(&self) -> bool {
        self.role == ExpressionRole::Condition || self.field == "/happened"
    }

    pub(super) fn pointer(&self) -> String {
        format!("{}{}{}", self.base, self.field, self.inside)
    }

    /// Adds a fix that replaces `wrong` with `right` in this expression, if it contains `wrong`.
    pub(super) fn rename(&self, draft: &PlanDraft, found: Diagnostic, wrong: &str, right: &str) -> Diagnostic {
        let path = self.pointer();
        let Some(text) = draft.document.pointer(&path).and_then(Value::as_str) else { return found };
        let corrected = replace_name(text, wrong, right);
        if corrected == text {
            found
        } else {
            found.fix(vec![PatchOperation::Replace { path, value: corrected.into() }])
        }
    }
}

/// Replaces a name wherever it is not a prefix of a longer one.
fn replace_name(text: &str, wrong: &str, right: &str) -> String {
    let mut corrected = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(wrong) {
        let after = &rest[at + wrong.len()..];
        let whole = !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        corrected.push_str(&rest[..at]);
        corrected.push_str(if whole { right } else { wrong });
        rest = after;
    }
    corrected.push_str(rest);
    corrected
}

pub(super) fn places<'a>(draft: &'a StepDraft, step: &'a Step) -> Vec<ExpressionSite<'a>> {
    let mut places = Vec::new();
    for site in sites(draft, step) {
        let role = ExpressionRole::Parameters(site.purpose);
        for (inside, hole) in site.call.parameters.holes() {
            for expression in hole.expressions() {
                places.push(ExpressionSite {
                    role,
                    expression,
                    site,
                    base: &site.draft.pointer,
                    field: "/parameters",
                    inside,
                });
            }
        }
        let verdicts =
            site.probe.map(|probe| [(Some(&probe.happened), "/happened"), (probe.result.as_ref(), "/result")]);
        for (expression, field) in verdicts.into_iter().flatten() {
            let place = |expression| ExpressionSite {
                role: ExpressionRole::Verdict,
                expression,
                site,
                base: &site.draft.pointer,
                field,
                inside: "",
            };
            places.extend(expression.map(place));
        }
        if site.purpose != CallPurpose::Effect {
            continue;
        }
        if let Some(expression) = &step.when {
            let base = &draft.pointer;
            places.push(ExpressionSite {
                role: ExpressionRole::Condition,
                expression,
                site,
                base,
                field: "/when",
                inside: "",
            });
        }
        if let (Some(draft), Some(fan_out)) = (&draft.for_each, &step.for_each) {
            let (expression, base) = (&fan_out.items, &draft.items_pointer);
            places.push(ExpressionSite { role: ExpressionRole::Items, expression, site, base, field: "", inside: "" });
        }
    }
    places
}
