//! Checks the spelling of step ids and tool names.

use super::StepDraft;
use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::limits::NAME_CHARS_MAX;
use crate::plan::findings::FindingCollector;
use crate::pointer;
use crate::wording::quoted;
use std::collections::{HashMap, HashSet};

/// Reports ids that expressions could not refer to, each with a fix that renames it everywhere.
pub(super) fn check(steps: &[StepDraft], findings: &mut FindingCollector) {
    let bad: Vec<&StepDraft> = steps.iter().filter(|step| !is_id(&step.id)).collect();
    if bad.is_empty() {
        return;
    }
    let mut taken: HashSet<String> = steps.iter().map(|step| step.id.clone()).collect();
    let mut mentions: HashMap<&str, Vec<&str>> = HashMap::new();
    for step in steps {
        let propagated = step.failure_policy.iter().flat_map(|policy| &policy.propagate_to);
        for (id, at) in step.depends_on.iter().chain(propagated) {
            mentions.entry(id).or_default().push(at);
        }
    }
    for step in bad {
        let path = pointer::field(&step.pointer, "id");
        if step.id.is_empty() {
            continue;
        }
        let chars = step.id.chars().count();
        if chars > NAME_CHARS_MAX {
            let message = format!("\"id\" is {chars} characters long, the limit is {NAME_CHARS_MAX} characters");
            findings.push(Diagnostic::error("plan.limit", path, message));
            continue;
        }
        let id = free_id(&step.id, &mut taken);
        let message =
            format!("{} is not a step id: expected a letter, then letters, digits, \"_\" or \"-\"", quoted(&step.id));
        // Of two steps with the same id, the first gets the references.
        let renamed = mentions.remove(&*step.id).unwrap_or_default().into_iter().map(str::to_owned);
        let fix = std::iter::once(path.clone())
            .chain(renamed)
            .map(|path| PatchOperation::Replace { path, value: id.clone().into() })
            .collect();
        findings.push(Diagnostic::error("plan.bad_id", path, message).hint(format!("write {}", quoted(&id))).fix(fix));
    }
}

/// Reports a tool name that is not `server.tool`; one that is too long was reported already.
pub(super) fn check_tool_name(tool: &str, at: impl FnOnce() -> String, findings: &mut FindingCollector) {
    if is_tool_name(tool) || tool.chars().count() > NAME_CHARS_MAX {
        return;
    }
    findings.push_with(|| {
        let message = format!("{} is not a tool name: expected server.tool", quoted(tool));
        let hint = if tool.contains('.') {
            "letters, digits, \"_\", \"-\" and \"/\" may be used between the dots"
        } else {
            "the server that offers the tool comes first, then a dot"
        };
        Diagnostic::error("plan.tool_name", at(), message).hint(hint)
    });
}

fn is_id(id: &str) -> bool {
    id.starts_with(|c: char| c.is_ascii_alphabetic())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        && id.len() <= NAME_CHARS_MAX
}

fn is_tool_name(tool: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'/' | b'-');
    tool.contains('.') && tool.split('.').all(|part| !part.is_empty() && part.bytes().all(allowed))
}

/// Turns an id into a valid and unused one.
fn free_id(id: &str, taken: &mut HashSet<String>) -> String {
    let mut plain = String::new();
    for c in id.chars() {
        match c {
            _ if c.is_ascii_alphanumeric() || c == '-' => plain.push(c),
            _ if plain.ends_with('_') => {}
            _ => plain.push('_'),
        }
    }
    let plain = plain.trim_matches('_');
    let plain = if plain.starts_with(|c: char| c.is_ascii_alphabetic()) {
        plain.to_owned()
    } else {
        format!("step_{plain}").trim_end_matches('_').to_owned()
    };
    let mut free: String = plain.chars().take(NAME_CHARS_MAX - 5).collect();
    let stem = free.clone();
    let mut number = 2;
    while !taken.insert(free.clone()) {
        free = format!("{stem}_{number}");
        number += 1;
    }
    free
}
