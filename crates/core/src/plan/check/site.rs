//! Every call of a step beside what was typed for it.

use crate::plan::diagnostic::PatchOp;
use crate::plan::draft::{CallDraft, CompensationDraft, ProbeDraft, StepDraft};
use crate::plan::pointer;
use crate::plan::{Call, Compensation, Probe, Step};
use serde_json::{Value, json};

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The step's own call.
    Effect,
    Fallback,
    /// Offsets the effect of the step or of its fallback.
    Undo,
    Probe,
    /// Finds out whether a compensation happened.
    UndoProbe,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'a> {
    pub(super) purpose: Purpose,
    pub(super) draft: &'a CallDraft,
    pub(super) call: &'a Call,
    /// The call whose effect this is about: the step's own, or its fallback's.
    pub(super) effect: &'a Call,
    pub(super) effect_draft: &'a CallDraft,
    /// The probe whose call this is.
    pub(super) probe: Option<&'a Probe>,
    /// The document's key that holds the tool.
    pub(super) tool_key: &'static str,
}

impl Site<'_> {
    pub(super) fn tool_pointer(&self) -> String {
        format!("{}/{}", self.draft.pointer, self.tool_key)
    }

    pub(super) fn parameters_pointer(&self) -> String {
        format!("{}/parameters", self.draft.pointer)
    }

    /// The change that gives a parameter this value, also where there are no parameters yet.
    pub(super) fn set_parameter(&self, name: &str, value: Value) -> PatchOp {
        let all = self.parameters_pointer();
        match self.draft.fields().is_empty() {
            true => PatchOp::Add { path: all, value: json!({ name: value }) },
            false => PatchOp::Add { path: pointer::field(&all, name), value },
        }
    }

    /// Shows every value of the parameters with its pointer and its name (in a list, the list's), parents first; but only
    /// when there is one of interest, because pointers cost more than looking. References to secrets are not entered.
    pub(super) fn visit_parameters(
        &self,
        interesting: &dyn Fn(&str, &Value) -> bool,
        visit: &mut dyn FnMut(&str, &str, &Value),
    ) {
        let mut open: Vec<(&str, &Value)> =
            self.draft.fields().iter().map(|(name, value)| (name.as_str(), value)).collect();
        let mut any = false;
        while let Some((name, value)) = open.pop().filter(|_| !any) {
            any = interesting(name, value);
            match value {
                Value::Array(items) => open.extend(items.iter().map(|item| (name, item))),
                Value::Object(fields) if !is_secret(value) => {
                    open.extend(fields.iter().map(|(name, value)| (name.as_str(), value)));
                }
                _ => {}
            }
        }
        if !any {
            return;
        }
        let base = self.parameters_pointer();
        let mut open: Vec<(String, &str, &Value)> = self
            .draft
            .fields()
            .iter()
            .map(|(name, value)| (pointer::field(&base, name), name.as_str(), value))
            .collect();
        while let Some((at, name, value)) = open.pop() {
            visit(&at, name, value);
            match value {
                Value::Array(items) => {
                    open.extend(
                        items.iter().enumerate().map(|(i, item)| (pointer::item(&at, i), name, item)),
                    );
                }
                Value::Object(fields) if !is_secret(value) => open.extend(
                    fields.iter().map(|(name, value)| (pointer::field(&at, name), name.as_str(), value)),
                ),
                _ => {}
            }
        }
    }
}

/// Whether a value is a reference to a secret, well written or not.
fn is_secret(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key("secret"))
}

pub(super) fn sites<'a>(draft: &'a StepDraft, step: &'a Step) -> Vec<Site<'a>> {
    let effect = Site {
        purpose: Purpose::Effect,
        draft: &draft.call,
        call: &step.call,
        effect: &step.call,
        effect_draft: &draft.call,
        probe: None,
        tool_key: draft.tool_key,
    };
    let mut sites = vec![effect];
    undo(&effect, draft.compensation.as_ref(), step.compensation.as_ref(), &mut sites);
    probe(&effect, Purpose::Probe, draft.probe.as_ref(), step.probe.as_ref(), &mut sites);
    if let (Some(draft), Some(fallback)) = (&draft.fallback, &step.fallback) {
        let site = Site {
            purpose: Purpose::Fallback,
            draft: &draft.call,
            call: &fallback.call,
            effect: &fallback.call,
            effect_draft: &draft.call,
            probe: None,
            tool_key: "tool",
        };
        sites.push(site);
        undo(&site, draft.compensation.as_ref(), fallback.compensation.as_ref(), &mut sites);
    }
    sites
}

fn undo<'a>(
    effect: &Site<'a>,
    draft: Option<&'a CompensationDraft>,
    compensation: Option<&'a Compensation>,
    sites: &mut Vec<Site<'a>>,
) {
    if let (Some(draft), Some(compensation)) = (draft, compensation) {
        let call = &compensation.call;
        sites.push(Site { purpose: Purpose::Undo, draft: &draft.call, call, tool_key: "tool", ..*effect });
        probe(effect, Purpose::UndoProbe, draft.probe.as_ref(), compensation.probe.as_ref(), sites);
    }
}

fn probe<'a>(
    effect: &Site<'a>,
    purpose: Purpose,
    draft: Option<&'a ProbeDraft>,
    probe: Option<&'a Probe>,
    sites: &mut Vec<Site<'a>>,
) {
    if let (Some(draft), Some(probe)) = (draft, probe) {
        let call = &probe.call;
        sites.push(Site {
            purpose,
            draft: &draft.call,
            call,
            probe: Some(probe),
            tool_key: "tool",
            ..*effect
        });
    }
}
