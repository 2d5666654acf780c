//! Applies the fixes that findings carry, one after the other, and keeps those that help.

use super::{Checker, PlanFile};
use anyhow::Context;
use rutter_core::plan::diagnostic::{Diagnostic, Severity};
use rutter_core::plan::document::Format;
use rutter_core::plan::patch::apply_patch;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Fixes that bring new findings to fix for ever are stopped here.
const ROUNDS_MAX: usize = 100;

pub(super) struct Fixed {
    /// The file as it is now, checked again.
    pub(super) file: PlanFile,
    /// What was changed, one line each.
    pub(super) applied: Vec<String>,
    /// The fixed plan, when it could not go back to where it came from.
    pub(super) document: Option<Value>,
}

impl Fixed {
    pub(super) fn untouched(file: PlanFile) -> Fixed {
        Fixed { file, applied: Vec::new(), document: None }
    }
}

/// Errors are repaired. A plan with warnings is a plan, and a machine changes it only if warnings are not allowed.
pub(super) fn is_fixable(found: &Diagnostic, is_strict: bool) -> bool {
    found.fix.is_some() && (is_strict || found.severity == Severity::Error)
}

/// Fixes what can be fixed. JSON files are written back; anything else is handed out as a document.
pub(super) fn fix(checker: &Checker, path: &Path, file: PlanFile, is_strict: bool) -> anyhow::Result<Fixed> {
    if file.document.is_none() {
        return Ok(Fixed::untouched(file));
    }
    let is_json = Format::guess(file.text.as_bytes()) == Format::Json;
    let is_in_place = is_json && path != Path::new("-");
    let (fixed, applied) = apply(checker, file, is_strict);
    let document = fixed.document.as_ref().map(|document| Value::clone(&document.value));
    if !is_in_place {
        return Ok(Fixed { file: fixed, applied, document });
    }
    if !applied.is_empty() {
        write(path, &fixed.text).with_context(|| format!("cannot write {}", fixed.name))?;
    }
    Ok(Fixed { file: fixed, applied, document: None })
}

/// Applies fixes until none is left that makes its finding go away: all at once where that works, else one by one.
fn apply(checker: &Checker, mut file: PlanFile, is_strict: bool) -> (PlanFile, Vec<String>) {
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

/// The file with these findings fixed, laid out as JSON and checked again; none if one of them would stay.
fn patched(checker: &Checker, file: &PlanFile, fixed: &[Diagnostic]) -> Option<PlanFile> {
    let mut value = Value::clone(&file.document.as_ref()?.value);
    // From the end, so that an entry taken out of a list does not move what is still to be fixed.
    for found in fixed.iter().rev() {
        value = apply_patch(&value, found.fix.as_ref()?).ok()?;
    }
    let text = format!("{value:#}\n");
    let better = checker.check_file(PlanFile::from_bytes(file.name.clone(), text.as_bytes(), Format::Json));
    let is_better = better.diagnostics.iter().all(|found| !fixed.contains(found));
    is_better.then_some(better)
}

/// Writes beside the file and then swaps, so that a full disk does not cost the plan.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
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
