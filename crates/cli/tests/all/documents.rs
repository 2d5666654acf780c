//! Documents match the program: their commands are run with it, and their settings are those it knows.

pub mod console;
pub mod fixture;
mod settings;

use crate::fixture::RUTTER;
use crate::server::fixture::ServerFixture;
use console::{Command, commands};
use fixture::DocumentFixture;
use serde_json::Value;
use settings::{documented, known};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn the_readme_example_works_as_described() {
    DocumentFixture::new().play(&commands(&read("README.md"), "## Carry out a plan"));
}

#[test]
fn the_worked_example_of_running_plans_works_as_described() {
    let commands = commands(&read("docs/running.md"), "## Worked example");
    let count = commands.iter().filter(|command| !command.output.is_empty()).count();
    assert!(count >= 5, "only {count} commands have an expected output");
    DocumentFixture::new().play(&commands);
}

#[test]
fn the_documented_answer_of_run_has_the_fields_that_are_printed() {
    let page = read("docs/running.md");
    let block = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let documented: Value = serde_json::from_str(block).unwrap();
    let printed = ServerFixture::new().json(&["run", "asking.yaml", "--json"]);
    let has = |printed: &Value, documented: &Value| {
        for name in documented.as_object().unwrap().keys().filter(|name| *name != "result") {
            assert!(printed.get(name).is_some(), "docs/running.md has {name:?}: {printed}");
        }
    };
    has(&printed, &documented);
    has(&printed["plan"], &documented["plan"]);
    has(&printed["steps"][0], &documented["steps"][0]);
    has(&printed["receipt"], &documented["receipt"]);
}

#[test]
fn every_setting_is_documented_and_every_documented_setting_is_known() {
    let text = read("docs/tools.md");
    let common = documented(&text, "### Settings of single tools");
    for (heading, settings, shares) in [
        ("### `[servers.NAME]`", "[servers.a]\ncommand = 'x'\nno_such_key = 1", false),
        ("### Settings of single tools", "[servers.a]\ncommand = 'x'\n[servers.a.tools.b]\nno_such_key = 1", false),
        ("### `[http.NAME]`", "[http.a]\nno_such_key = 1", false),
        ("### `[http.NAME.tools.TOOL]`", "[http.a.tools.b]\nno_such_key = 1", true),
        ("### `[commands.NAME]`", "[commands.a]\nno_such_key = 1", false),
        ("### `[commands.NAME.tools.TOOL]`", "[commands.a.tools.b]\nno_such_key = 1", true),
        ("### `[secrets]`", "[secrets]\na = { no_such_key = 1 }", false),
        ("### `[limits]`", "[limits]\nno_such_key = 1", false),
        ("### `[notify.NAME]`", "[notify.a]\nno_such_key = 1", false),
    ] {
        let documented = documented(&text, heading);
        assert_eq!(documented, known(settings), "{heading} in docs/tools.md");
        assert!(!shares || documented.is_superset(&common), "{heading} has the settings of every tool");
    }
}

#[test]
fn every_table_of_settings_has_a_section() {
    let text = read("docs/tools.md");
    let elsewhere = [
        ("alerts", "docs/alerts.md", "[alerts.commands."),
        ("policy_limits", "docs/policy.md", "[policy_limits]"),
        ("telemetry", "docs/observability.md", "[telemetry]"),
        ("webhooks", "docs/webhooks.md", "[webhooks]"),
    ];
    for (table, path, section) in elsewhere {
        assert!(read(path).contains(section), "{path} does not document [{table}]");
    }
    let beside = ["dir", "retention", "server"].into_iter().chain(elsewhere.map(|(table, ..)| table));
    let beside: BTreeSet<String> = beside.map(str::to_owned).collect();
    let tables = &known("no_such_key = 1") - &beside;
    assert!(tables.len() >= 6, "{tables:?}");
    for table in tables {
        let section = [format!("### `[{table}]`"), format!("### `[{table}.NAME]`")];
        assert!(section.iter().any(|heading| text.contains(heading)), "docs/tools.md has no section for {table}");
    }
}

#[test]
fn every_setting_of_the_server_is_documented() {
    let text = read("docs/server.md");
    for key in known("[server]\nno_such_key = 1") {
        assert!(text.contains(&format!("{key} = ")) || text.contains(&format!("[server.{key}.")), "{key}");
    }
}

/// The part below the mark is the output of `rutter man --markdown`; `UPDATE_GOLDENS=1` regenerates it.
#[test]
fn the_reference_of_the_command_line_is_up_to_date() {
    let mark = "<!-- Below: rutter man --markdown -->\n\n";
    let text = read("docs/cli.md");
    let (above, written) = text.split_once(mark).expect("docs/cli.md has its mark");
    let output = std::process::Command::new(RUTTER).args(["man", "--markdown"]).output();
    let printed = String::from_utf8(output.unwrap().stdout).unwrap();
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
        return fs::write(path, format!("{above}{mark}{printed}")).unwrap();
    }
    let differs = written.lines().zip(printed.lines()).find(|(written, printed)| written != printed);
    assert!(written == printed, "docs/cli.md differs below its mark from `rutter man --markdown`: {differs:?}");
}

#[test]
fn defaults_are_those_of_the_program() {
    let text = read("docs/tools.md");
    let limits = rutter_tools::config::CallLimits::default();
    for (key, default) in [
        ("calls", limits.calls.to_string()),
        ("calls_per_tenant", limits.calls_per_tenant.to_string()),
        ("calls_per_server", limits.calls_per_server.to_string()),
        ("breaker_failures", limits.breaker_failures.to_string()),
        ("breaker_pause", limits.breaker_pause.to_string()),
    ] {
        assert!(text.contains(&format!("| `{key}` | `{default}` |")), "{key} is {default} by default");
    }
    let asked = rutter_core::policy::OperatorPolicy::default().ask_again_max;
    let policy = read("docs/policy.md");
    assert!(policy.contains(&format!("| `ask_again_max` | `{asked}` |")), "ask_again_max is {asked} by default");
    let tool = rutter_tools::config::command::CommandToolConfig::default();
    for (key, default) in [
        ("memory_mib", tool.memory_mib.to_string()),
        ("cpu_seconds", tool.cpu_seconds.to_string()),
        ("processes", tool.processes.to_string()),
        ("files", tool.files.to_string()),
        ("output_kib", tool.output_kib.to_string()),
    ] {
        assert!(text.contains(&format!("| `{key}` | `{default}` |")), "{key} is {default} by default");
    }
}

#[test]
fn console_blocks_are_read() {
    let text =
        "## A\n```console\n$ x\n```\n## B\n```console\n$ one # exit code 3\nout\n\nmore\n$ two\n```\n## C\n$ no\n";
    let found = commands(text, "## B");
    let expected = Command { line: "one".to_owned(), code: 3, output: vec!["out".into(), "".into(), "more".into()] };
    assert_eq!(found, [expected, Command { line: "two".to_owned(), code: 0, output: Vec::new() }]);
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(document: &str) -> String {
    fs::read_to_string(repository().join(document)).unwrap()
}
