//! Argument templates. The text between the slots is the operator's and never changes; a slot takes one parameter
//! verbatim, and can neither end its argument nor begin another.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The longest argument that the system accepts.
const ARGUMENT_BYTES_MAX: usize = 128 * 1024 - 1;

#[derive(Debug)]
pub(super) struct CommandTemplate {
    program: String,
    arguments: Vec<Vec<ArgumentPiece>>,
}

#[derive(Debug)]
enum ArgumentPiece {
    Fixed(String),
    Slot(String),
}

impl CommandTemplate {
    pub fn parse(argv: &[String], declared: &BTreeSet<String>) -> Result<CommandTemplate, String> {
        let Some((program, arguments)) = argv.split_first() else {
            return Err("`argv` must name a program".to_owned());
        };
        if !program.starts_with('/') {
            return Err(format!("`argv` must begin with the absolute path of a program, not {program:?}"));
        }
        if argv.iter().any(|argument| argument.contains('\0')) {
            return Err("`argv` must not contain NUL".to_owned());
        }
        let program_pieces = pieces(program)?;
        if program_pieces.iter().any(|piece| matches!(piece, ArgumentPiece::Slot(_))) {
            return Err("which program is started cannot depend on a parameter".to_owned());
        }
        let arguments: Vec<Vec<ArgumentPiece>> = arguments.iter().map(|text| pieces(text)).collect::<Result<_, _>>()?;
        let undeclared = arguments.iter().flatten().find_map(|piece| match piece {
            ArgumentPiece::Slot(name) if !declared.contains(name) => Some(name),
            _ => None,
        });
        if let Some(name) = undeclared {
            return Err(format!("`argv` has a slot {{{name}}}, which `input` does not have as a property"));
        }
        let program = program_pieces.into_iter().map(|piece| piece.text()).collect();
        Ok(CommandTemplate { program, arguments })
    }

    pub fn program(&self) -> &str {
        &self.program
    }

    /// The program, and the script an interpreter is given: the first argument that is no option, if it is always the
    /// same file. Files after it are data, which may change.
    pub fn program_files(&self) -> Vec<PathBuf> {
        let is_option =
            |pieces: &&Vec<ArgumentPiece>| matches!(&pieces[..], [ArgumentPiece::Fixed(text)] if text.starts_with('-'));
        let script = match self.arguments.iter().find(|pieces| !is_option(pieces)).map(Vec::as_slice) {
            Some([ArgumentPiece::Fixed(text)]) if text.starts_with('/') => Some(PathBuf::from(text)),
            _ => None,
        };
        let script = script.filter(|path| path.is_file());
        std::iter::once(PathBuf::from(&self.program)).chain(script).collect()
    }

    /// The files that the arguments always name, which the program may therefore read.
    pub fn fixed_paths(&self) -> Vec<PathBuf> {
        let fixed = self.arguments.iter().filter_map(|pieces| match &pieces[..] {
            [ArgumentPiece::Fixed(text)] if text.starts_with('/') => Some(PathBuf::from(text)),
            _ => None,
        });
        let files = fixed.filter(|path| path.is_file());
        std::iter::once(PathBuf::from(&self.program)).chain(files).collect()
    }

    pub fn fill(&self, parameters: &Value, options: bool) -> Result<Vec<String>, String> {
        let mut filled = Vec::new();
        for pieces in &self.arguments {
            let mut argument = Some(String::new());
            for piece in pieces {
                let text = match piece {
                    ArgumentPiece::Fixed(text) => Some(text.clone()),
                    ArgumentPiece::Slot(name) => value(name, parameters.get(name), options)?,
                };
                argument = argument.zip(text).map(|(argument, text)| argument + &text);
            }
            if argument.as_ref().is_some_and(|argument| argument.len() > ARGUMENT_BYTES_MAX) {
                return Err(format!("an argument is longer than {ARGUMENT_BYTES_MAX} bytes"));
            }
            filled.extend(argument);
        }
        Ok(filled)
    }
}

impl ArgumentPiece {
    fn text(self) -> String {
        match self {
            ArgumentPiece::Fixed(text) | ArgumentPiece::Slot(text) => text,
        }
    }
}

/// The text of a parameter; `None` if it was not given.
fn value(name: &str, value: Option<&Value>, options: bool) -> Result<Option<String>, String> {
    let text = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    if text.contains('\0') {
        return Err(format!("{name} contains the character NUL, which no argument can"));
    }
    if text.starts_with('-') && !options {
        return Err(format!("{name} begins with `-`, so the program could take it for an option"));
    }
    Ok(Some(text))
}

fn pieces(text: &str) -> Result<Vec<ArgumentPiece>, String> {
    let mut pieces = Vec::new();
    let mut fixed = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        fixed.push_str(&rest[..at]);
        let brace = &rest[at..at + 1];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            fixed.push_str(brace);
            rest = after;
            continue;
        }
        let slot = rest.split_once('}').filter(|(name, _)| brace == "{" && !name.is_empty() && !name.contains('{'));
        let Some((name, after)) = slot else {
            return Err(format!("{text:?} has an unmatched brace; double it for a literal brace"));
        };
        if !fixed.is_empty() {
            pieces.push(ArgumentPiece::Fixed(std::mem::take(&mut fixed)));
        }
        pieces.push(ArgumentPiece::Slot(name.to_owned()));
        rest = after;
    }
    fixed.push_str(rest);
    if !fixed.is_empty() || pieces.is_empty() {
        pieces.push(ArgumentPiece::Fixed(fixed));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]
    use super::*;
    use serde_json::json;

    fn parse(argv: &[&str]) -> Result<CommandTemplate, String> {
        let argv: Vec<String> = argv.iter().map(|text| (*text).to_owned()).collect();
        CommandTemplate::parse(&argv, &["a".to_owned(), "b".to_owned()].into())
    }

    #[test]
    fn slots_are_filled_and_arguments_without_a_value_left_out() {
        let template = parse(&["/bin/x", "{a}", "--b={b}", "{{a}}", "", "{a}:{b}"]).unwrap();
        let fill = |parameters| template.fill(&parameters, false).unwrap();
        assert_eq!(fill(json!({ "a": "x y", "b": 3 })), ["x y", "--b=3", "{a}", "", "x y:3"]);
        assert_eq!(fill(json!({ "a": ["{b}", 1] })), [r#"["{b}",1]"#, "{a}", ""]);
        assert_eq!(fill(json!({ "b": null })), ["{a}", ""]);
    }

    #[test]
    fn values_that_look_like_options_are_refused_unless_declared() {
        let template = parse(&["/bin/x", "{a}"]).unwrap();
        for (value, word) in [(json!("-rf"), "option"), (json!(-1), "option"), (json!("a\0b"), "NUL")] {
            assert!(template.fill(&json!({ "a": value }), false).unwrap_err().contains(word), "{value}");
        }
        assert_eq!(template.fill(&json!({ "a": "-rf" }), true).unwrap(), ["-rf"]);
        let long = "x".repeat(ARGUMENT_BYTES_MAX);
        assert!(template.fill(&json!({ "a": long }), false).is_ok());
        assert!(template.fill(&json!({ "a": long + "x" }), false).is_err());
    }

    #[test]
    fn invalid_templates_are_refused() {
        for (argv, word) in [
            (&[][..], "name a program"),
            (&["convert"], "absolute path"),
            (&["/bin/{a}"], "cannot depend"),
            (&["/bin/x", "{c}"], "{c}"),
            (&["/bin/x", "{a"], "brace"),
            (&["/bin/x", "a}"], "brace"),
            (&["/bin/x", "{}"], "brace"),
            (&["/bin/x", "a\0"], "NUL"),
        ] {
            assert!(parse(argv).unwrap_err().contains(word), "{argv:?}");
        }
    }
}
