//! The commands of a document, and their expected output.

#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    pub line: String,
    pub code: i32,
    /// Empty if the document shows none. `…` stands for anything, alone on a line for any number of lines.
    pub output: Vec<String>,
}

/// The commands in the `console` blocks of one section.
pub fn commands(text: &str, heading: &str) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    let mut is_open = false;
    for line in section(text, heading) {
        match line {
            "```console" => is_open = true,
            "```" => is_open = false,
            line if is_open => match line.strip_prefix("$ ") {
                Some(typed) => commands.push(Command::typed(typed)),
                None => commands.last_mut().expect("a block begins with a command").output.push(line.to_owned()),
            },
            _ => {}
        }
    }
    assert!(!commands.is_empty(), "there is no command under {heading:?}");
    commands
}

/// The lines between a heading and the next of its rank.
pub fn section<'a>(text: &'a str, heading: &str) -> impl Iterator<Item = &'a str> {
    let rank = heading.chars().take_while(|c| *c == '#').count();
    let is_next = move |line: &&str| {
        let marks = line.chars().take_while(|c| *c == '#').count();
        marks == 0 || marks > rank
    };
    let start = heading.to_owned();
    text.lines().skip_while(move |line| !line.starts_with(&start)).skip(1).take_while(is_next)
}

impl Command {
    fn typed(typed: &str) -> Command {
        let (line, code) = match typed.split_once("# exit code ") {
            Some((line, code)) => (line, code.trim().parse().expect("an exit code is a number")),
            None => (typed, 0),
        };
        Command { line: line.trim().to_owned(), code, output: Vec::new() }
    }
}

/// Whether an output matches the document.
pub fn matches_output(texts: &[String], lines: &[&str]) -> bool {
    match (texts.split_first(), lines.split_first()) {
        (None, None) => true,
        (Some((skip, words)), _) if skip == "…" => {
            (0..=lines.len()).any(|skipped| matches_output(words, &lines[skipped..]))
        }
        (Some((answer, message)), Some((line, lines))) => fits(answer, line) && matches_output(message, lines),
        _ => false,
    }
}

fn fits(message: &str, line: &str) -> bool {
    let mut pieces = message.split('…');
    let Some(mut rest) = pieces.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let mut is_exact = true;
    for piece in pieces {
        is_exact = piece.is_empty();
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.is_empty() || (is_exact && message.contains('…'))
}

#[test]
fn dots_alone_stand_for_lines() {
    let message = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(matches_output(&message("…\nb"), &["b"]));
    assert!(matches_output(&message("…\nb"), &["a", "a", "b"]));
    assert!(!matches_output(&message("…\nb"), &["a"]));
    assert!(!matches_output(&message("b"), &["b", "c"]));
}

#[test]
fn dots_stand_for_anything() {
    for (message, line, expected) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a…", "ab", true),
        ("a…c", "abc", true),
        ("a…c", "abcd", false),
        ("…c", "bc", true),
        ("a…", "b", false),
    ] {
        assert_eq!(fits(message, line), expected, "{message} {line}");
    }
}
