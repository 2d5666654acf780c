//! Values of many MiB from one tool to another: through results, parameters, journal and the standard input of a program.

use crate::fixture::{RUTTER, output_text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const SETTINGS: &str = r#"
dir = "data"
[commands.files.tools.fetch]
description = "a text of about 5 MiB"
argv = ["/usr/bin/seq", "1", "800000"]
result = "text"
output_kib = 16000
safety = "read_only"

[commands.files.tools.keep]
description = "gives back what it is given"
argv = ["/bin/cat"]
stdin = "json"
input = { type = "object", required = ["text"], properties = { text = { type = "string" } } }
output_kib = 16000

[commands.files.tools.name]
description = "gives back an argument"
argv = ["/bin/echo", "{text}"]
input = { type = "object", required = ["text"], properties = { text = { type = "string" } } }
result = "text"
"#;

#[test]
fn a_step_passes_5_mib_of_another_steps_result_to_a_tool() {
    let directory = tempfile::tempdir().unwrap();
    let plan = r#"
name: large
steps:
  - { id: fetch, tool: files.fetch }
  - { id: keep, tool: files.keep, parameters: { text: "{{ steps.fetch.result }}" } }
  - { id: count, tool: files.name, parameters: { text: "{{ steps.keep.result.text | length | string }}" } }
"#;
    let answer = run(directory.path(), plan);
    assert_eq!(answer["status"], "completed", "{}", answer["failed_steps"]);
    let text: String = (1..=800_000).map(|line| format!("{line}\n")).collect();
    let count = result(&answer, "count").as_str().unwrap().trim().parse::<usize>().unwrap();
    assert!((text.trim_end().len()..=text.len()).contains(&count), "{count} of {} bytes", text.len());
    assert!(count > 5 << 20);
    let verified = rutter(directory.path(), &["journal", "verify"]);
    assert!(verified.status.success(), "{}", output_text(&verified));
}

#[test]
fn the_items_of_a_fan_out_are_passed_on_as_large_as_its_results() {
    let directory = tempfile::tempdir().unwrap();
    let plan = r#"
name: large-items
steps:
  - { id: fetch, tool: files.fetch, for_each: "[1, 2]" }
  - { id: keep, tool: files.keep, parameters: { text: t, items: "{{ steps.fetch.items }}" } }
  - { id: each, tool: files.keep, for_each: steps.fetch.items, parameters: { text: "{{ item.result }}" } }
  - { id: count, tool: files.name, parameters: { text: "{{ steps.fetch.items | map(attribute='status') | join(' ') }}" } }
"#;
    let answer = run(directory.path(), plan);
    assert_eq!(answer["status"], "completed", "{}", answer["failed_steps"]);
    assert_eq!(result(&answer, "count").as_str().unwrap().trim(), "completed completed");
}

#[test]
fn what_an_expression_computes_and_what_a_tool_accepts_stay_limited() {
    let directory = tempfile::tempdir().unwrap();
    let plan = r#"
name: too-large
on_failure: continue_others
steps:
  - { id: fetch, tool: files.fetch }
  - { id: within, tool: files.keep, parameters: { text: "all: {{ steps.fetch.result }}" } }
  - { id: argument, tool: files.name, parameters: { text: "{{ steps.fetch.result }}" } }
  - { id: thrice, tool: files.keep, parameters: { text: "{{ steps.fetch.result }}", more: ["{{ steps.fetch.result }}", "{{ steps.fetch.result }}"] } }
"#;
    let answer = run(directory.path(), plan);
    let why = |step: &str| {
        let failed = answer["failed_steps"].as_array().unwrap();
        let failed = failed.iter().find(|failed| failed["step"] == step);
        failed.unwrap_or_else(|| panic!("{step} did not fail"))["message"].as_str().unwrap().to_owned()
    };
    assert!(why("within").contains("COMPUTED_BYTES_MAX"), "{}", why("within"));
    assert!(why("argument").contains("bytes"), "{}", why("argument"));
    assert!(why("thrice").contains("PARAMETERS_BYTES_MAX"), "{}", why("thrice"));
}

fn result<'a>(answer: &'a Value, step: &str) -> &'a Value {
    let steps = answer["steps"].as_array().unwrap();
    &steps.iter().find(|found| found["id"] == step).unwrap()["result"]
}

fn run(directory: &Path, plan: &str) -> Value {
    fs::write(directory.join("rutter.toml"), SETTINGS).unwrap();
    fs::write(directory.join("plan.yaml"), plan).unwrap();
    let output = rutter(directory, &["run", "plan.yaml", "--json"]);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        let talk = String::from_utf8_lossy(&output.stderr);
        panic!("{error}: {talk}");
    })
}

fn rutter(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(RUTTER).args(arguments).current_dir(directory).output().unwrap()
}
