//! The output of `rutter plan`: snapshots of every command on the examples and on broken plans.

use crate::fixture::RUTTER;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const EXAMPLES: [&str; 8] =
    ["order", "trip", "database-migration", "release", "off-boarding", "document-pipeline", "bulk-update", "incident"];
const SHAPES: [&str; 2] = ["shapes/flat.json", "shapes/numbered.json"];
const BROKEN: [&str; 5] = ["syntax.yaml", "fields.yaml", "cycle.json", "tools.yaml", "expressions.yaml"];

struct Answer {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs the program as a person at a plain UTF-8 terminal would, from the repository's root.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(RUTTER);
    command.args(arguments).current_dir(root()).env_clear().env("LC_ALL", "C.UTF-8");
    command
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rutter(arguments: &[&str]) -> Answer {
    finish(command(arguments))
}

fn finish(mut command: Command) -> Answer {
    let output = command.stdin(Stdio::null()).output().unwrap();
    Answer {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The whole output, for a snapshot.
fn seen(answer: &Answer) -> String {
    let stderr = if answer.stderr.is_empty() { String::new() } else { format!("--- stderr\n{}", answer.stderr) };
    format!("{}{stderr}--- exit {}\n", answer.stdout, answer.code)
}

/// Runs a plan command with the examples' catalogue.
fn plan(verb: &str, more: &[&str], files: &[&str]) -> Answer {
    rutter(&[&["plan", verb, "--tools", "examples/tools.json"], more, files].concat())
}

fn example(name: &str) -> String {
    format!("examples/{name}.yaml")
}

fn broken(name: &str) -> String {
    format!("crates/cli/tests/broken/{name}")
}

#[test]
fn every_example_is_without_error_and_warns_only_as_intended() {
    let mut files: Vec<String> = EXAMPLES.map(example).to_vec();
    files.extend(SHAPES.map(|shape| format!("examples/{shape}")));
    let there = fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().path());
    let plans = there.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")).count();
    assert_eq!(plans, EXAMPLES.len(), "every example is tested");
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let answer = plan("check", &[], &files);
    insta::assert_snapshot!("check_examples", seen(&answer));
    assert_eq!(answer.code, 0);
}

#[test]
fn check_points_at_every_mistake() {
    for name in BROKEN {
        let answer = plan("check", &[], &[&broken(name)]);
        insta::assert_snapshot!(format!("check_{name}"), seen(&answer));
        assert_eq!(answer.code, 2, "{name}");
    }
}

#[test]
fn check_reports_the_same_as_json() {
    for name in BROKEN {
        let answer = plan("check", &["--json"], &[&broken(name)]);
        assert_eq!((answer.code, answer.stdout.lines().count()), (2, 1), "{name}");
        let value: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
        insta::assert_snapshot!(format!("check_{name}_json"), format!("{value:#}\n"));
    }
}

#[test]
fn preview_graph_and_their_json_are_stable() {
    for name in EXAMPLES {
        for verb in ["preview", "graph"] {
            let answer = plan(verb, &[], &[&example(name)]);
            assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{verb} {name}");
            insta::assert_snapshot!(format!("{verb}_{name}"), answer.stdout);
        }
    }
    for verb in ["preview", "graph"] {
        let answer = plan(verb, &["--json"], &[&example("order")]);
        let value: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
        insta::assert_snapshot!(format!("{verb}_order_json"), format!("{value:#}\n"));
    }
}

#[test]
fn preview_prints_the_details_of_one_step() {
    let answer = plan("preview", &["--step", "charge"], &[&example("order")]);
    insta::assert_snapshot!("preview_one_step", seen(&answer));
    let answer = plan("preview", &["--step", "chrage"], &[&example("order")]);
    insta::assert_snapshot!("preview_no_such_step", seen(&answer));
    assert_eq!(answer.code, 2);
    for (step, code) in [("charge", 0), ("chrage", 2)] {
        let answer = plan("preview", &["--json", "--step", step], &[&example("order")]);
        let value: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
        assert_eq!((answer.code, value["preview"].is_null()), (code, code != 0), "{step}");
    }
}

#[test]
fn commands_that_need_a_plan_report_errors_on_stderr() {
    for verb in ["preview", "graph"] {
        let answer = plan(verb, &[], &[&broken("cycle.json")]);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{verb}");
        assert!(answer.stderr.contains("plan.cycle"), "{}", answer.stderr);
        let answer = plan(verb, &["--json"], &[&broken("cycle.json")]);
        let value: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
        assert_eq!((answer.code, &value["ok"], &value[verb]), (2, &false.into(), &serde_json::Value::Null));
    }
}

#[test]
fn diff_reports_changes_by_meaning() {
    let changed = Temporary::new("order-changed.yaml");
    let order = fs::read_to_string(root().join(example("order"))).unwrap();
    let reserve_only = order.split("  - id: mail").next().unwrap();
    let text = reserve_only
        .replace("quantity: 1", "quantity: 2")
        .replace("timeout: 30s", "timeout: 45s")
        .replace("on_failure: compensate", "on_failure: manual_decision # a comment changes nothing");
    fs::write(&changed.path, text).unwrap();
    let name = changed.path.to_str().unwrap();

    let answer = plan("diff", &[], &[&example("order"), name]);
    insta::assert_snapshot!("diff_order", seen(&answer).replace(name, "order-changed.yaml"));
    assert_eq!(answer.code, 1);
    let answer = plan("diff", &["--json"], &[&example("order"), name]);
    let value: serde_json::Value = serde_json::from_str(&answer.stdout.replace(name, "order-changed.yaml")).unwrap();
    insta::assert_snapshot!("diff_order_json", format!("{value:#}\n"));
    assert_eq!(answer.code, 1);

    let answer = plan("diff", &[], &[&example("order"), &example("order")]);
    insta::assert_snapshot!("diff_same", seen(&answer));
    assert_eq!(answer.code, 0);
    assert_eq!(plan("diff", &[], &[&example("order"), &broken("cycle.json")]).code, 2);
}

#[test]
fn strict_refuses_warnings() {
    let file = example("database-migration");
    assert_eq!(plan("check", &[], &[&file]).code, 0);
    let answer = plan("check", &["--strict", "--json"], &[&file]);
    assert_eq!((answer.code, answer.stdout.contains("\"ok\":false")), (2, true));
    assert_eq!(plan("check", &["--strict"], &[&example("order")]).code, 0);
}

#[test]
fn without_a_catalogue_tools_are_not_checked_and_a_note_on_stderr_says_so() {
    let answer = rutter(&["plan", "check", &example("order")]);
    insta::assert_snapshot!("check_without_catalogue", seen(&answer));
    let answer = rutter(&["plan", "check", "--driver", "server", &example("order")]);
    assert_eq!((answer.code, answer.stdout.contains("inventory.reserve")), (2, true));
    let answer = plan("check", &["--driver", "agent"], &[&broken("tools.yaml")]);
    assert!(!answer.stdout.contains("inventory.reserv\""), "the agent may call unregistered tools");
}

#[test]
fn a_plan_may_come_from_stdin() {
    let mut child = command(&["plan", "check", "--tools", "examples/tools.json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let order = fs::read(root().join(example("order"))).unwrap();
    child.stdin.take().unwrap().write_all(&order).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "<stdin>: ok, 4 steps\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_missing_file_does_not_hide_the_others() {
    let answer = plan("check", &[], &["no-such-plan.yaml", &example("order")]);
    insta::assert_snapshot!("check_missing_file", seen(&answer));
    assert_eq!(answer.code, 2);
    let answer = plan("check", &["--json"], &["no-such-plan.yaml", &example("order")]);
    assert_eq!((answer.code, answer.stdout.lines().count()), (2, 2));
    let errors = fs::read_to_string(root().join("docs/errors.md")).unwrap();
    assert!(errors.contains("### `file.unreadable`"));
}

#[test]
fn a_catalogue_that_cannot_be_used_is_explained() {
    let answer = rutter(&["plan", "check", "--tools", "no-such-catalogue.json", &example("order")]);
    insta::assert_snapshot!("catalogue_missing", seen(&answer));
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""));
    let catalogue = Temporary::new("catalogue.json");
    let text = "{\n  \"tools\": [\n    { \"name\": \"inventory.reserve\", \"input_schema\": {}, \"safety\": \"onse\" }\n  ]\n}\n";
    fs::write(&catalogue.path, text).unwrap();
    let name = catalogue.path.to_str().unwrap();
    let answer = rutter(&["plan", "check", "--tools", name, &example("order")]);
    insta::assert_snapshot!("catalogue_broken", seen(&answer).replace(name, "catalogue.json"));
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""));
}

#[test]
fn fix_rewrites_json_in_place_and_leaves_yaml_alone() {
    let json = Temporary::new("fix.json");
    let plan_text = r#"{"name":"x","steps":[{"id":"a","tool":"k8s.status","args":{"service":"checkout"}}]}"#;
    fs::write(&json.path, plan_text).unwrap();
    let name = json.path.to_str().unwrap();
    let answer = plan("check", &["--fix"], &[name]);
    insta::assert_snapshot!("fix_json", seen(&answer).replace(name, "fix.json"));
    insta::assert_snapshot!("fix_json_file", fs::read_to_string(&json.path).unwrap());
    assert_eq!(answer.code, 0);
    let again = plan("check", &["--fix"], &[name]);
    assert_eq!((again.code, again.stderr.as_str()), (0, ""), "nothing is left to fix");

    let before = fs::read_to_string(root().join(broken("fields.yaml"))).unwrap();
    let answer = plan("check", &["--fix"], &[&broken("fields.yaml")]);
    insta::assert_snapshot!("fix_yaml", seen(&answer));
    assert_eq!(fs::read_to_string(root().join(broken("fields.yaml"))).unwrap(), before);
    let answer = plan("check", &["--fix", "--json"], &[&broken("fields.yaml")]);
    let value: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    assert!(value["document"]["steps"].is_array() && !value["fixed"].as_array().unwrap().is_empty());
}

#[test]
fn fix_leaves_warnings_to_their_author_unless_they_are_forbidden() {
    let file = Temporary::new("warned.json");
    let step = |id: &str, needs: &[&str]| serde_json::json!({"id": id, "tool": "k8s.status", "parameters": {"service": "x"}, "depends_on": needs});
    let steps = [step("a", &[]), step("b", &["a"]), step("c", &["a", "b"])];
    let text = serde_json::json!({"name": "warned", "steps": steps}).to_string();
    fs::write(&file.path, &text).unwrap();
    let name = file.path.to_str().unwrap();
    let answer = plan("check", &["--fix"], &[name]);
    assert!(answer.stdout.contains("lint.needless_dependency"), "{}", answer.stdout);
    assert_eq!((answer.code, fs::read_to_string(&file.path).unwrap()), (0, text));
    let answer = plan("check", &["--fix", "--strict"], &[name]);
    assert_eq!((answer.code, answer.stderr.contains("lint.needless_dependency")), (0, true), "{}", answer.stdout);
    let fixed: serde_json::Value = serde_json::from_slice(&fs::read(&file.path).unwrap()).unwrap();
    assert_eq!(fixed["steps"][2]["depends_on"], serde_json::json!(["b"]));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = command(&["plan", "preview", "--tools", "examples/tools.json", &example("order")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
}

#[test]
fn output_that_cannot_be_written_is_an_internal_error() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let output = command(&["plan", "check", &example("order")]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
}

#[test]
fn a_mistyped_flag_or_command_is_suggested() {
    let answer = rutter(&["plan", "check", "--strikt", &example("order")]);
    assert_eq!((answer.code, answer.stderr.contains("--strict")), (2, true), "{}", answer.stderr);
    let answer = rutter(&["plan", "chekc", &example("order")]);
    assert_eq!((answer.code, answer.stderr.contains("check")), (2, true), "{}", answer.stderr);
    assert_eq!(rutter(&["plan", "check"]).code, 2);
}

#[test]
fn help_names_the_exit_codes() {
    for arguments in [&["--help"][..], &["plan", "check", "--help"], &["plan", "diff", "--help"]] {
        let answer = rutter(arguments);
        assert_eq!((answer.code, answer.stdout.contains("Exit codes:")), (0, true), "{arguments:?}");
    }
    insta::assert_snapshot!("help_check", rutter(&["plan", "check", "--help"]).stdout);
}

#[test]
fn shells_get_their_completions() {
    for (shell, word) in [("bash", "_rutter()"), ("zsh", "#compdef rutter"), ("fish", "complete -c rutter")] {
        let answer = rutter(&["completions", shell]);
        assert_eq!((answer.code, answer.stdout.contains(word)), (0, true), "{shell}");
        assert!(answer.stdout.contains("preview"), "{shell}");
    }
}

#[test]
fn colour_is_opt_in_and_plain_terminals_get_ascii_symbols() {
    let file = broken("cycle.json");
    let arguments = ["plan", "check", "--tools", "examples/tools.json", &file];
    assert!(!rutter(&arguments).stdout.contains('\x1b'));
    assert!(rutter(&[&arguments[..], &["--color", "always"]].concat()).stdout.contains('\x1b'));
    let mut no_colour = command(&arguments);
    no_colour.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1");
    assert!(!finish(no_colour).stdout.contains('\x1b'));

    for variable in [("LC_ALL", "C"), ("TERM", "dumb")] {
        for verb in ["check", "preview", "graph"] {
            let mut plain = command(&["plan", verb, "--tools", "examples/tools.json", &example("trip")]);
            plain.env(variable.0, variable.1);
            let answer = finish(plain);
            assert!(answer.stdout.is_ascii(), "{verb} {variable:?}\n{}", answer.stdout);
            if verb == "graph" && variable.0 == "TERM" {
                insta::assert_snapshot!("graph_trip_ascii", answer.stdout);
            }
        }
    }
}

#[test]
fn a_large_plan_is_listed_instead_of_drawn() {
    let file = Temporary::new("large.json");
    let steps: Vec<_> = (0..60)
        .map(|at| {
            let needs: Vec<String> = if at == 0 { vec![] } else { vec![format!("s{}", (at - 1) / 2)] };
            serde_json::json!({"id": format!("s{at}"), "tool": "k8s.status", "parameters": {"service": "x"}, "depends_on": needs})
        })
        .collect();
    fs::write(&file.path, serde_json::json!({"name": "large", "max_parallel": 8, "steps": steps}).to_string()).unwrap();
    let answer = plan("graph", &[], &[file.path.to_str().unwrap()]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    insta::assert_snapshot!("graph_large", answer.stdout);
}

/// The blocks that begin with `$ rutter` in documents show the actual output.
#[test]
fn documents_show_the_actual_output() {
    let mut visible = 0;
    for document in ["examples/README.md", "docs/cli.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        for block in text.split("```console\n").skip(1) {
            let (block, _) = block.split_once("```").unwrap();
            let (first, expected) = block.split_once('\n').unwrap();
            let arguments: Vec<&str> = first.strip_prefix("$ rutter ").unwrap().split(' ').collect();
            let answer = rutter(&arguments);
            assert_eq!(format!("{}{}", answer.stdout, answer.stderr), expected, "{document}: {first}");
            visible += 1;
        }
    }
    assert!(visible >= 3);
}

/// The commands in running text that make a plan of a template, as a reader types them.
#[test]
fn the_documents_make_plans_of_templates() {
    let mut typed = 0;
    for document in ["README.md", "docs/templates.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let commands = text.split('`').filter_map(|piece| piece.strip_prefix("rutter plan new --template "));
        for command in commands.filter(|command| !command.starts_with("NAME")) {
            let arguments: Vec<&str> = ["plan", "new", "--template"].into_iter().chain(command.split(' ')).collect();
            let answer = rutter(&arguments);
            assert_eq!(answer.code, 0, "{document}: {command}: {}", answer.stderr);
            typed += 1;
        }
    }
    assert!(typed > 0);
}

/// A file that is removed with the test.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn new(name: &str) -> Temporary {
        let path = std::env::temp_dir().join(format!("rutter-{}-{name}", std::process::id()));
        Temporary { path }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
