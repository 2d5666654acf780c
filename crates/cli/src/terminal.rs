//! Where answers and remarks go, and what can be shown there. Only this file asks the environment about that.

use crate::args::Colour;
use crate::failure::Refusal;
use crate::graph::Pen;
use anstream::{AutoStream, ColorChoice};
use std::io::{self, IsTerminal, Write};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    colour: ColorChoice,
    pub(crate) signs: Signs,
    /// A person watches, so that a pause has a sense.
    pub(crate) is_interactive: bool,
    /// A person sees the remarks.
    pub(crate) is_watched: bool,
}

impl Terminal {
    pub(crate) fn from_environment(colour: Colour) -> Terminal {
        let colour = match colour {
            Colour::Auto => ColorChoice::Auto,
            Colour::Always => ColorChoice::Always,
            Colour::Never => ColorChoice::Never,
        };
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
        let is_dumb = variable("TERM").is_some_and(|term| term == "dumb");
        let signs = if !is_dumb && is_utf8(locale.as_deref()) { Signs::UNICODE } else { Signs::ASCII };
        Terminal {
            colour,
            signs,
            is_interactive: io::stdout().is_terminal(),
            is_watched: io::stderr().is_terminal(),
        }
    }

    /// Writes an answer to stdout.
    pub(crate) fn answer(&self, text: &str) -> io::Result<()> {
        let mut stdout = AutoStream::new(io::stdout().lock(), self.colour);
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// Writes a remark to stderr. Nobody can be told that this failed.
    pub(crate) fn remark(&self, text: &str) {
        let mut stderr = AutoStream::new(io::stderr().lock(), self.colour);
        let _ = stderr.write_all(text.as_bytes());
    }

    /// Shows how far something is, over what was shown before; nothing where nobody watches.
    pub(crate) fn progress(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        if stderr.is_terminal() {
            let _ = write!(stderr, "\r\x1b[K{text}");
        }
    }

    /// Asks a person before something that cannot be undone, unless that was answered with the command.
    pub(crate) fn confirm(&self, is_answered: bool, question: &str) -> anyhow::Result<()> {
        if is_answered {
            return Ok(());
        }
        let unconfirmed = || Refusal::new("command.unconfirmed", "nothing was changed: it was not confirmed");
        if !io::stdin().is_terminal() {
            return Err(unconfirmed().with_hint("--yes confirms it where nobody can be asked").into());
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

/// The signs for what undoing can achieve and for what became of an attempt, and the pen for graphs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signs {
    pub(crate) undoable: &'static str,
    pub(crate) partly: &'static str,
    pub(crate) not_undoable: &'static str,
    pub(crate) nothing: &'static str,
    pub(crate) rule: &'static str,
    pub(crate) done: &'static str,
    pub(crate) failed: &'static str,
    pub(crate) undone: &'static str,
    pub(crate) pen: Pen,
}

impl Signs {
    pub(crate) const UNICODE: Signs = Signs {
        undoable: "✓",
        partly: "±",
        not_undoable: "✗",
        nothing: "·",
        rule: "─",
        done: "✓",
        failed: "✗",
        undone: "↩",
        pen: Pen::UNICODE,
    };
    pub(crate) const ASCII: Signs = Signs {
        undoable: "+",
        partly: "~",
        not_undoable: "x",
        nothing: ".",
        rule: "-",
        done: "+",
        failed: "x",
        undone: "<",
        pen: Pen::ASCII,
    };
}

/// Makes a text from a plan safe to print: no control characters, so no escape sequences.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// The locale a system without any settings has is taken for one that can show everything.
fn is_utf8(locale: Option<&str>) -> bool {
    let locale = locale.unwrap_or("UTF-8").to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_cannot_send_escape_sequences() {
        assert_eq!(printable("a\x1b[31mred\u{7}\u{9b}\n"), "a\u{fffd}[31mred\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(printable("Überprüfung ✓"), "Überprüfung ✓");
    }

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
