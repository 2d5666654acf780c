//! Recipes work as described: their commands are run with the real program, and their output is compared.

use crate::documents::console::{Command, commands};
use crate::documents::fixture::DocumentFixture;
use crate::documents::repository;
use std::fs;
use std::path::Path;

#[test]
fn an_agent_is_connected() {
    play("connect-an-agent");
}

#[test]
fn a_call_is_approved_from_the_terminal() {
    play("approve-from-the-terminal");
}

#[test]
fn what_an_agent_does_is_recorded() {
    play("record-what-an-agent-does");
}

#[test]
fn a_finished_execution_is_undone() {
    play("undo-a-finished-execution");
}

#[test]
fn a_doubt_is_settled() {
    play("settle-a-doubt");
}

#[test]
fn a_checkpoint_is_stored_elsewhere() {
    play("keep-a-checkpoint-elsewhere");
}

#[test]
fn every_recipe_is_tested() {
    let own = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/recipes.rs")).unwrap();
    for file in fs::read_dir(repository().join("docs/recipes")).unwrap().map(Result::unwrap) {
        let name = file.file_name().into_string().unwrap();
        let name = name.trim_end_matches(".md");
        assert!(own.contains(&format!("play({name:?})")), "no test runs {name}");
    }
}

fn play(recipe: &str) {
    let text = fs::read_to_string(repository().join(format!("docs/recipes/{recipe}.md"))).unwrap();
    let mut typed = Vec::new();
    let mut rest = text.as_str();
    // A block with a name is a file; it is written at its position between the commands.
    while let Some((before, name, content, after)) = next_file(rest) {
        typed.extend(commands_in(before));
        let line = format!("cat > {name} <<'END'\n{content}\nEND");
        typed.push(Command { line, code: 0, output: Vec::new() });
        rest = after;
    }
    typed.extend(commands_in(rest));
    DocumentFixture::new().play(&typed);
}

/// The text before it, its name, its content, and the text after it.
fn next_file(text: &str) -> Option<(&str, &str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + text[from..].find("\n```")? + 1;
        let head = text[start..].lines().next()?;
        let body = start + head.len() + 1;
        let end = body + text[body..].find("\n```")?;
        let after = end + "\n```".len();
        match head.split_once(' ') {
            Some((_, name)) => return Some((&text[..start], name, &text[body..end], &text[after..])),
            None => from = after,
        }
    }
}

fn commands_in(text: &str) -> Vec<Command> {
    match text.contains("```console") {
        true => commands(&format!("# Here\n{}", text.trim_start_matches("# ")), "# Here"),
        false => Vec::new(),
    }
}

#[test]
fn files_are_found_between_commands() {
    let text = "# A\n```console\n$ one\n```\nx\n```json a.json\n{}\n{}\n```\n```console\n$ two\n```\n";
    let (before, name, content, after) = next_file(text).unwrap();
    assert_eq!((name, content), ("a.json", "{}\n{}"));
    assert_eq!(commands_in(before)[0].line, "one");
    assert_eq!(commands_in(after)[0].line, "two");
    assert!(next_file(after).is_none());
}
