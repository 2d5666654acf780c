//! What people and programs see of `rutter demo`, and what it leaves behind.

// Every call of a test may fail loudly, also in the functions they share.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory that goes away with the test; the demo takes it for the system's.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        let path = std::env::temp_dir().join(format!("rutter-{}-{name}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Temporary(path)
    }

    fn demo(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rutter"));
        command.arg("demo").args(arguments).env_clear().env("LC_ALL", "C.UTF-8").env("TMPDIR", &self.0);
        command.envs(variables.iter().copied()).output().unwrap()
    }

    fn left_behind(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// Commitments are salted, so they differ each time; checkpoints are signed as time passes.
fn without_chance(text: &str) -> String {
    let (before, after) = text.split_once("commitment ").unwrap();
    let text = format!("{before}commitment …{}", after.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    let (before, after) = text.split_once(" checkpoints").unwrap();
    format!("{}… checkpoints{after}", before.trim_end_matches(|c: char| c.is_ascii_digit()))
}

#[test]
fn the_story_is_told_in_eighty_columns_and_leaves_nothing_behind() {
    let temporary = Temporary::new("demo-story");
    let output = temporary.demo(&[], &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]);
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(!stdout.contains('\x1b'), "no colour was wanted");
    let too_wide: Vec<&str> = stdout.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(too_wide.is_empty(), "{too_wide:#?}");
    assert!(temporary.left_behind().is_empty());
    insta::assert_snapshot!("demo", without_chance(&stdout));
}

#[test]
fn programs_are_told_that_each_scene_ended_as_told() {
    let temporary = Temporary::new("demo-json");
    let output = temporary.demo(&["--json"], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(output.stderr));
    let scenes: Vec<Value> =
        text(output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(scenes.len(), 6);
    for (scene, number) in scenes.iter().zip(1..) {
        let told = (&scene["scene"], &scene["as_told"], &scene["done_twice"]);
        assert_eq!(told, (&json!(number), &json!(true), &json!(0)), "{scene:#}");
        assert!(!scene["checks"].as_array().unwrap().is_empty(), "{scene:#}");
    }
    assert_eq!(
        scenes[1]["effects"],
        json!({
            "inventory.release": 1, "inventory.reserve": 1, "mail.send": 0,
            "payments.charge": 1, "payments.refund": 1, "shipping.book": 0,
        })
    );
    assert_eq!(scenes[2]["effects"]["payments.charge"], 2, "two executions, one charge each");
    assert_eq!(scenes[3]["effects"]["payments.charge"], 1);
    let undone: Vec<&Value> = scenes[1]["progress"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|progress| progress["sign"] == "undone")
        .map(|progress| &progress["who"])
        .collect();
    assert_eq!(undone, ["charge", "reserve"]);
}

#[test]
fn the_database_is_kept_when_asked_for() {
    let temporary = Temporary::new("demo-keep");
    let output = temporary.demo(&["--keep", "--fast"], &[]);
    assert_eq!(output.status.code(), Some(0));
    let left = temporary.left_behind();
    let [folder] = &left[..] else { panic!("one directory was expected: {left:?}") };
    assert!(text(output.stderr).contains(folder.to_str().unwrap()));
    for name in ["rutter.db", "ledger.pub", "6-order.ndjson", "6-altered.ndjson"] {
        assert!(folder.join(name).exists(), "{name}");
    }
}

#[test]
fn a_plain_terminal_gets_plain_signs() {
    let temporary = Temporary::new("demo-plain");
    let output = temporary.demo(&[], &[("TERM", "dumb")]);
    assert_eq!((output.status.code(), output.stdout.is_ascii()), (Some(0), true));
}

#[test]
fn a_place_that_cannot_be_written_to_is_named() {
    let temporary = Temporary::new("demo-nowhere");
    let nowhere = Path::new(&temporary.0).join("not-there");
    let output = temporary.demo(&[], &[("TMPDIR", nowhere.to_str().unwrap())]);
    let stderr = text(output.stderr);
    assert_eq!((output.status.code(), stderr.contains("cannot create")), (Some(4), true), "{stderr}");
}
