//! Every call of a step together with its draft.

use crate::diagnostic::PatchOperation;
use crate::plan::draft::{CallDraft, CompensationDraft, ProbeDraft, StepDraft};
use crate::plan::{Compensation, PlannedCall, Probe, Step};
use crate::pointer;
use serde_json::{Value, json};

/// The purpose of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallPurpose {
    /// The step's own call.
    Effect,
    Fallback,
    /// Undoes the effect of the step or of its fallback.
    Undo,
    Probe,
    /// Finds out whether a compensation happened.
    UndoProbe,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CallSite<'a> {
    pub(super) purpose: CallPurpose,
    pub(super) draft: &'a CallDraft,
    pub(super) call: &'a PlannedCall,
    /// The call whose effect this is about: the step's own, or its fallback's.
    pub(super) effect: &'a PlannedCall,
    pub(super) effect_draft: &'a CallDraft,
    /// The probe whose call this is.
    pub(super) probe: Option<&'a Probe>,
    /// The document's key that holds the tool.
    pub(super) tool_key: &'static str,
}

impl CallSite<'_> {
    pub(super) fn tool_pointer(&self) -> String {
        format!("{}/{}", self.draft.pointer, self.tool_key)
    }

    pub(super) fn parameters_pointer(&self) -> String {
        format!("{}/parameters", self.draft.pointer)
    }

    /// The patch that sets a parameter, even if there are no parameters yet.
    pub(super) fn set_parameter(&self, name: &str, value: Value) -> PatchOperation {
        let all = self.parameters_pointer();
        match self.draft.fields().is_empty() {
            true => PatchOperation::Add { path: all, value: json!({ name: value }) },
            false => PatchOperation::Add { path: pointer::field(&all, name), value },
        }
    }

    /// Visits every parameter value with its pointer and its name (in a list, the list's), parents first; but only if
    /// one is interesting, because pointers are expensive. References to secrets are not entered.
    pub(super) fn for_each_parameter(
        &self,
        interesting: &dyn Fn(&str, &Value) -> bool,
        each: &mut dyn FnMut(&str, &str, &Value),
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
            each(&at, name, value);
            match value {
                Value::Array(items) => {
                    open.extend(items.iter().enumerate().map(|(i, item)| (pointer::item(&at, i), name, item)));
                }
                Value::Object(fields) if !is_secret(value) => {
                    open.extend(fields.iter().map(|(name, value)| (pointer::field(&at, name), name.as_str(), value)))
                }
                _ => {}
            }
        }
    }
}

/// Whether a value is a reference to a secret, valid or not.
fn is_secret(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key("secret"))
}

pub(super) fn sites<'a>(draft: &'a StepDraft, step: &'a Step) -> Vec<CallSite<'a>> {
    let effect = CallSite {
        purpose: CallPurpose::Effect,
        draft: &draft.call,
        call: &step.call,
        effect: &step.call,
        effect_draft: &draft.call,
        probe: None,
        tool_key: draft.tool_key,
    };
    let mut sites = vec![effect];
    undo(&effect, draft.compensation.as_ref(), step.compensation.as_ref(), &mut sites);
    probe(&effect, CallPurpose::Probe, draft.probe.as_ref(), step.probe.as_ref(), &mut sites);
    if let (Some(draft), Some(fallback)) = (&draft.fallback, &step.fallback) {
        let site = CallSite {
            purpose: CallPurpose::Fallback,
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
    effect: &CallSite<'a>,
    draft: Option<&'a CompensationDraft>,
    compensation: Option<&'a Compensation>,
    sites: &mut Vec<CallSite<'a>>,
) {
    if let (Some(draft), Some(compensation)) = (draft, compensation) {
        let call = &compensation.call;
        sites.push(CallSite { purpose: CallPurpose::Undo, draft: &draft.call, call, tool_key: "tool", ..*effect });
        probe(effect, CallPurpose::UndoProbe, draft.probe.as_ref(), compensation.probe.as_ref(), sites);
    }
}

fn probe<'a>(
    effect: &CallSite<'a>,
    purpose: CallPurpose,
    draft: Option<&'a ProbeDraft>,
    probe: Option<&'a Probe>,
    sites: &mut Vec<CallSite<'a>>,
) {
    if let (Some(draft), Some(probe)) = (draft, probe) {
        let call = &probe.call;
        sites.push(CallSite { purpose, draft: &draft.call, call, probe: Some(probe), tool_key: "tool", ..*effect });
    }
}
