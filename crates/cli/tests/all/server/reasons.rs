//! Reasons on the command line: requested at a terminal, and refused without one elsewhere.

use crate::fixture::RUTTER;
use crate::server::fixture::{ServerFixture, ended, output_text};
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// An execution that waits for an approval, and no server.
fn waiting(fixture: &ServerFixture) -> String {
    let ran = fixture.rutter(&["run", "asking.yaml", "--json"]);
    assert_eq!(ran.status.code(), Some(3), "{}", output_text(&ran));
    fixture.execution()
}

/// Runs the program at a terminal where a person types a line.
fn at_a_terminal(fixture: &ServerFixture, words: &[&str], typed: &str) -> Output {
    let there = fixture.command(&[]);
    let line = [&[RUTTER], words].concat().join(" ");
    let variables = there.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).current_dir(fixture.path("")).env_clear().envs(variables);
    let mut child = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(typed.as_bytes()).unwrap();
    ended(child)
}

#[test]
fn without_a_terminal_a_missing_reason_is_refused() {
    let fixture = ServerFixture::new();
    let execution = waiting(&fixture);
    for words in [&["exec", "kill", &execution, "--json"][..], &["exec", "kill", &execution, "--reason", " ", "--json"]]
    {
        let refused = fixture.rutter(words);
        assert_eq!(refused.status.code(), Some(2), "{}", output_text(&refused));
        assert!(output_text(&refused).contains("command.reason_missing"), "{}", output_text(&refused));
    }
    assert_eq!(fixture.status(&execution), "waiting");
}

#[test]
fn at_a_terminal_the_reason_is_requested_and_journaled() {
    let fixture = ServerFixture::new();
    let execution = waiting(&fixture);
    let none = at_a_terminal(&fixture, &["exec", "kill", &execution], "\n");
    assert_eq!(none.status.code(), Some(2), "{}", output_text(&none));
    assert!(output_text(&none).contains("command.reason_missing"), "{}", output_text(&none));
    let killed = at_a_terminal(&fixture, &["exec", "kill", &execution], "the wrong order\n");
    assert!(output_text(&killed).contains("Why kill?"), "{}", output_text(&killed));
    assert_eq!(killed.status.code(), Some(1), "{}", output_text(&killed));
    assert_eq!(fixture.status(&execution), "cancelled");
    let journal = output_text(&fixture.rutter(&["journal", "show", &execution]));
    assert!(journal.contains("the wrong order"), "{journal}");
}
