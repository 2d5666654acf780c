//! The output of `rutter demo`, and what it leaves behind.

use crate::fixture::{RUTTER, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The temporary directory of the demo.
struct Temporary(TempDir);

impl Temporary {
    fn new() -> Temporary {
        Temporary(tempfile::tempdir().unwrap())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(RUTTER);
        command.arg("demo").args(arguments).env_clear().env("LC_ALL", "C.UTF-8").env("TMPDIR", self.0.path());
        command
    }

    fn demo(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        self.command(arguments).envs(variables.iter().copied()).output().unwrap()
    }

    fn left_behind(&self) -> Vec<PathBuf> {
        fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// Processes that were started in this directory or have it as an argument.
    fn processes(&self) -> Vec<u32> {
        let place = self.0.path().canonicalize().unwrap();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().map(Result::unwrap) {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let is_argument = String::from_utf8_lossy(&line).contains(place.to_str().unwrap());
            let works_there = fs::read_link(entry.path().join("cwd")).is_ok_and(|path| path.starts_with(&place));
            if is_argument || works_there {
                found.push(pid);
            }
        }
        found
    }

    fn until_nothing_runs(&self) {
        until("no process of the demo is left", || self.processes().is_empty());
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// Removes process numbers and ids, which differ each time.
fn without_chance(story: &str) -> String {
    let story = story.replace(RUTTER, "rutter");
    let mut text = String::new();
    for word in story.split_inclusive([' ', '\n', '(', ')', ':', ',', '"']) {
        let (bare, end) = word.split_at(word.len() - 1);
        let digits = bare.trim_end_matches('.');
        let is_hash = digits.len() >= 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_process = text.ends_with("process ");
        let span = bare.strip_suffix("ms").or_else(|| bare.strip_suffix('s')).filter(|_| end == ")");
        let is_span = span.is_some_and(|span| span.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
        match (bare.strip_prefix("exec_"), is_hash || is_process || is_span) {
            (Some(_), _) => text += "exec_…",
            (None, true) => text += "…",
            (None, false) => text += bare,
        }
        text += end;
    }
    text
}

#[test]
fn the_demo_fits_eighty_columns_and_leaves_nothing_behind() {
    let temporary = Temporary::new();
    let output = temporary.demo(&[], &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]);
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(!stdout.contains('\x1b'), "no colour was wanted");
    let story = stdout.replace(RUTTER, "rutter");
    let too_wide: Vec<&str> = story.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(too_wide.is_empty(), "{too_wide:#?}");
    assert!(temporary.left_behind().is_empty());
    temporary.until_nothing_runs();
    let text = without_chance(&stdout);
    let strings: BTreeSet<String> = text.lines().map(in_one_space).collect();
    for line in pictured() {
        assert!(
            strings.contains(&line),
            "docs/demo.svg shows {line:?}, which the demo does not print: run scripts/picture"
        );
    }
    insta::assert_snapshot!("demo", without_chance(&stdout));
}

/// The lines of the picture in the README, without the typed command.
fn pictured() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo.svg");
    let picture = fs::read_to_string(path).unwrap();
    assert!(picture.len() <= 60 * 1024, "the picture has {} bytes", picture.len());
    let line = |line: &str| {
        let spaced = line.replace("</tspan>", " ");
        let text: String = spaced.split('<').map(|piece| piece.split_once('>').map_or("", |(_, text)| text)).collect();
        in_one_space(&without_chance(&format!("{} ", unescaped(&text))))
    };
    let lines: Vec<String> = picture.lines().filter(|line| line.starts_with("<text")).map(line).collect();
    assert!(lines.len() > 20, "{lines:?}");
    lines[1..].to_vec()
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

fn in_one_space(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn json_output_confirms_that_each_scene_ended_as_promised() {
    let temporary = Temporary::new();
    let output = temporary.demo(&["--json"], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(output.stderr));
    let scenes: Vec<Value> = text(output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(scenes.len(), 6);
    for (scene, number) in scenes.iter().zip(1..) {
        let answer = (&scene["scene"], &scene["as_told"], &scene["done_twice"]);
        assert_eq!(answer, (&json!(number), &json!(true), &json!(0)), "{scene:#}");
        assert!(!scene["checks"].as_array().unwrap().is_empty(), "{scene:#}");
    }
    assert_eq!(
        scenes[1]["effects"],
        json!({
            "carrier.ship": 0, "inventory.release": 1, "inventory.reserve": 1, "mail.confirm": 0,
            "payments.charge": 1, "payments.refund": 1,
        })
    );
    for scene in [2, 3, 4] {
        let once = json!({ "carrier.ship": 1, "inventory.reserve": 1, "mail.confirm": 1, "payments.charge": 1 });
        assert_eq!(scenes[scene]["effects"], once, "scene {}", scene + 1);
    }
    let undone: Vec<&Value> = scenes[1]["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| {
            event["text"].as_str().unwrap().contains("compensation") && event["kind"] == "attempt_succeeded"
        })
        .map(|event| &event["step"])
        .collect();
    assert_eq!(undone, ["charge", "reserve"]);
}

#[test]
fn the_server_stays_with_keep_and_stops_as_the_demo_explains() {
    let temporary = Temporary::new();
    let output = temporary.demo(&["--keep", "--fast"], &[("HOME", "/nonexistent")]);
    let message = text(output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    let left = temporary.left_behind();
    let [folder] = &left[..] else { panic!("one directory was expected: {left:?}") };
    let typed = |start: &str| {
        let line = message.lines().map(str::trim).find(|line| line.contains(start));
        let line = line.unwrap_or_else(|| panic!("{start:?} is not in {message}")).to_owned();
        let command = line.split_once(" -- ").map_or(line.as_str(), |(_, command)| command);
        let mut words = command.split(' ');
        assert_eq!(words.next(), Some(RUTTER), "{line}");
        let mut command = Command::new(RUTTER);
        command.args(words).env_clear().stdin(Stdio::null()).current_dir("/");
        command.output().unwrap()
    };
    let listed = typed("exec list");
    assert_eq!(listed.status.code(), Some(0), "{}", text(listed.stderr));
    assert_eq!(
        text(listed.stdout).lines().filter(|line| line.split_whitespace().nth(1) == Some("completed")).count(),
        3
    );
    assert_eq!(typed("journal verify").status.code(), Some(1), "the copy was changed");
    assert_eq!(typed("claude mcp add").status.code(), Some(0), "a client that disconnects at once");
    let stopped = typed("stop --dir");
    assert_eq!(stopped.status.code(), Some(0), "{}", text(stopped.stderr));
    temporary.until_nothing_runs();
    assert!(message.contains(&format!("rm -r {}", folder.canonicalize().unwrap().display())), "{message}");
}

#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    let temporary = Temporary::new();
    let mut child = temporary.command(&[]).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("2. A carrier that refuses") {
        line.clear();
        assert!(stdout.read_line(&mut line).unwrap() > 0, "the demo ended too early");
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    // A full pipe would block it.
    stdout.read_to_string(&mut line).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert!(temporary.left_behind().is_empty(), "{:?}", temporary.left_behind());
    temporary.until_nothing_runs();
}

#[test]
fn settings_of_others_are_not_used() {
    let temporary = Temporary::new();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("rutter.toml"), "no_such_setting = 1\n").unwrap();
    let mut command = temporary.command(&["--json"]);
    command.current_dir(elsewhere.path()).env("RUTTER_DIR", elsewhere.path());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(output.stderr));
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
}

#[test]
fn a_plain_terminal_gets_ascii_symbols() {
    let temporary = Temporary::new();
    let output = temporary.demo(&[], &[("TERM", "dumb")]);
    assert_eq!((output.status.code(), output.stdout.is_ascii()), (Some(0), true));
}

#[test]
fn an_unwritable_directory_is_named() {
    let temporary = Temporary::new();
    let nowhere = Path::new(temporary.0.path()).join("not-there");
    let output = temporary.demo(&[], &[("TMPDIR", nowhere.to_str().unwrap())]);
    let stderr = text(output.stderr);
    assert_eq!((output.status.code(), stderr.contains("cannot create")), (Some(4), true), "{stderr}");
}
