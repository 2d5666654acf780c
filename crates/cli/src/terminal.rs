//! Where results and messages go, and what can be displayed there. Only this module reads the environment for that.

use crate::args::ColorMode;
use crate::failure::CommandRefusal;
use crate::graph::GraphCharacters;
use anstream::{AutoStream, ColorChoice};
use std::io::{self, IsTerminal, Write};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    colour: ColorChoice,
    pub(crate) signs: TerminalSymbols,
    /// Stdout is a terminal: pauses make sense.
    pub(crate) is_interactive: bool,
    /// Stderr is a terminal.
    pub(crate) is_watched: bool,
}

impl Terminal {
    pub(crate) fn from_environment(colour: ColorMode) -> Terminal {
        let colour = match colour {
            ColorMode::Auto => ColorChoice::Auto,
            ColorMode::Always => ColorChoice::Always,
            ColorMode::Never => ColorChoice::Never,
        };
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
        let is_dumb = variable("TERM").is_some_and(|term| term == "dumb");
        let signs =
            if !is_dumb && is_utf8(locale.as_deref()) { TerminalSymbols::UNICODE } else { TerminalSymbols::ASCII };
        Terminal { colour, signs, is_interactive: io::stdout().is_terminal(), is_watched: io::stderr().is_terminal() }
    }

    /// Writes a result to stdout.
    pub(crate) fn answer(&self, text: &str) -> io::Result<()> {
        let mut stdout = AutoStream::new(io::stdout().lock(), self.colour);
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// Writes a message to stderr. An error of that cannot be reported.
    pub(crate) fn remark(&self, text: &str) {
        let mut stderr = AutoStream::new(io::stderr().lock(), self.colour);
        let _ = stderr.write_all(text.as_bytes());
    }

    /// Shows progress in place of the previous one, if stderr is a terminal.
    pub(crate) fn progress(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        if stderr.is_terminal() {
            let _ = write!(stderr, "\r\x1b[K{text}");
        }
    }

    /// Whether the user can be asked something.
    pub(crate) fn can_ask(&self) -> bool {
        self.is_watched && io::stdin().is_terminal()
    }

    /// The line that the user types.
    pub(crate) fn ask(&self, question: &str) -> anyhow::Result<String> {
        self.remark(question);
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(answer.trim().to_owned())
    }

    /// Asks for confirmation of something irreversible, unless the command already has it.
    pub(crate) fn confirm(&self, is_answered: bool, question: &str) -> anyhow::Result<()> {
        if is_answered {
            return Ok(());
        }
        let unconfirmed = || CommandRefusal::new("command.unconfirmed", "nothing was changed: it was not confirmed");
        if !io::stdin().is_terminal() {
            return Err(unconfirmed().with_hint("--yes confirms it without a terminal").into());
        }
        self.remark(&format!("{question} [y/N] "));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(unconfirmed().into()),
        }
    }
}

/// Symbols for the undo coverage and the result of an attempt, and the characters for graphs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TerminalSymbols {
    pub(crate) undoable: &'static str,
    pub(crate) partly: &'static str,
    pub(crate) not_undoable: &'static str,
    pub(crate) nothing: &'static str,
    pub(crate) rule: &'static str,
    pub(crate) done: &'static str,
    pub(crate) failed: &'static str,
    pub(crate) undone: &'static str,
    pub(crate) pen: GraphCharacters,
}

impl TerminalSymbols {
    pub(crate) const UNICODE: TerminalSymbols = TerminalSymbols {
        undoable: "✓",
        partly: "±",
        not_undoable: "✗",
        nothing: "·",
        rule: "─",
        done: "✓",
        failed: "✗",
        undone: "↩",
        pen: GraphCharacters::UNICODE,
    };
    pub(crate) const ASCII: TerminalSymbols = TerminalSymbols {
        undoable: "+",
        partly: "~",
        not_undoable: "x",
        nothing: ".",
        rule: "-",
        done: "+",
        failed: "x",
        undone: "<",
        pen: GraphCharacters::ASCII,
    };
}

/// A missing locale counts as one that can display everything.
fn is_utf8(locale: Option<&str>) -> bool {
    let locale = locale.unwrap_or("UTF-8").to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_decides_about_unicode() {
        for (locale, expected) in [
            (None, true),
            (Some("C.UTF-8"), true),
            (Some("de_DE.utf8"), true),
            (Some("C"), false),
            (Some("POSIX"), false),
        ] {
            assert_eq!(is_utf8(locale), expected, "{locale:?}");
        }
    }
}
