//! Applies the fixes of findings, and keeps those that help.

use super::{CheckedPlanFile, PlanChecker};
use anyhow::Context;
use rutter_core::diagnostic::{Diagnostic, DiagnosticSeverity};
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::patch::apply_patch;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The bound for fixes that keep causing new findings.
const ROUNDS_MAX: usize = 100;

pub(super) struct FixedPlan {
    /// The file as it is now, checked again.
    pub(super) file: CheckedPlanFile,
    /// The changes, one line each.
    pub(super) applied: Vec<String>,
    /// The fixed plan, if it could not be written back to its file.
    pub(super) document: Option<Value>,
}

impl FixedPlan {
    pub(super) fn untouched(file: CheckedPlanFile) -> FixedPlan {
        FixedPlan { file, applied: Vec::new(), document: None }
    }
}

/// Errors are fixable. A plan with warnings is valid, and is changed only if warnings are not allowed.
pub(super) fn is_fixable(found: &Diagnostic, is_strict: bool) -> bool {
    found.fix.is_some() && (is_strict || found.severity == DiagnosticSeverity::Error)
}

/// Fixes what can be fixed. JSON files are written back; other formats and saved plans are returned as a
/// document.
pub(super) fn fix(
    checker: &PlanChecker,
    path: &Path,
    file: CheckedPlanFile,
    is_strict: bool,
) -> anyhow::Result<FixedPlan> {
    if file.document.is_none() {
        return Ok(FixedPlan::untouched(file));
    }
    let is_json = DocumentFormat::guess(file.text.as_bytes()) == DocumentFormat::Json;
    let is_in_place = is_json && path != Path::new("-") && !file.is_saved;
    let (fixed, applied) = apply(checker, file, is_strict);
    let document = fixed.document.as_ref().map(|document| Value::clone(&document.value));
    if !is_in_place {
        return Ok(FixedPlan { file: fixed, applied, document });
    }
    if !applied.is_empty() {
        write(path, &fixed.text).with_context(|| format!("cannot write {}", fixed.name))?;
    }
    Ok(FixedPlan { file: fixed, applied, document: None })
}

/// Applies fixes until none makes its finding disappear: all at once if that works, otherwise one by one.
fn apply(checker: &PlanChecker, mut file: CheckedPlanFile, is_strict: bool) -> (CheckedPlanFile, Vec<String>) {
    let mut applied = Vec::new();
    let mut useless: Vec<Diagnostic> = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let is_next = |found: &&Diagnostic| is_fixable(found, is_strict) && !useless.contains(found);
        let next: Vec<Diagnostic> = file.diagnostics.iter().filter(is_next).cloned().collect();
        let Some(first) = next.first() else { break };
        let together = patched(checker, &file, &next).map(|better| (better, &next[..]));
        let alone = || patched(checker, &file, &next[..1]).map(|better| (better, &next[..1]));
        let Some((better, fixed)) = together.or_else(alone) else {
            useless.push(first.clone());
            continue;
        };
        let line = |found: &Diagnostic| format!("{} at {}: {}", found.code, found.pointer, found.message);
        applied.extend(fixed.iter().map(line));
        file = better;
    }
    (file, applied)
}

/// The file with these findings fixed, formatted as JSON and checked again; none if one of them would remain.
fn patched(checker: &PlanChecker, file: &CheckedPlanFile, fixed: &[Diagnostic]) -> Option<CheckedPlanFile> {
    let mut value = Value::clone(&file.document.as_ref()?.value);
    // From the end, so that an entry removed from a list does not move what is still to be fixed.
    for found in fixed.iter().rev() {
        value = apply_patch(&value, found.fix.as_ref()?).ok()?;
    }
    let text = format!("{value:#}\n");
    let better =
        checker.check_file(CheckedPlanFile::from_bytes(file.name.clone(), text.as_bytes(), DocumentFormat::Json));
    let is_better = better.diagnostics.iter().all(|found| !fixed.contains(found));
    is_better.then_some(better)
}

/// Writes a temporary file and renames it, so that a full disk does not destroy the plan.
pub(super) fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let path = fs::canonicalize(path)?;
    let mut beside = path.clone().into_os_string();
    beside.push(".rutter-tmp");
    let written = fs::write(&beside, text)
        .and_then(|()| fs::set_permissions(&beside, fs::metadata(&path)?.permissions()))
        .and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}
