//! How the story is told: sentences and lines of progress on the terminal, or one object per scene for programs.

use crate::table::{Paint, wrapped_to};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::io;
use std::thread;
use std::time::Duration;

/// How wide the story is told.
pub(crate) const WIDTH: usize = 80;

#[derive(Debug)]
pub(crate) struct Teller {
    terminal: Terminal,
    is_json: bool,
    pause: Duration,
    /// How wide the names of the steps are in this scene.
    names: Cell<usize>,
    /// The progress of this scene, for programs.
    progress: RefCell<Vec<Value>>,
}

/// A line of progress: what became of an attempt, or what somebody said.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) sign: Sign,
    pub(crate) who: String,
    pub(crate) words: String,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Sign {
    Done,
    Failed,
    Undone,
    Doubt,
    Note,
}

impl Teller {
    pub(crate) fn new(terminal: Terminal, is_json: bool, pause: Duration) -> Teller {
        Teller { terminal, is_json, pause, names: Cell::new(0), progress: RefCell::default() }
    }

    pub(crate) fn open(&self, number: u32, title: &str, shown: &str) -> io::Result<()> {
        let rule = self.terminal.signs.rule;
        let rest = WIDTH.saturating_sub(title.chars().count() + 7);
        let heading = format!("{} {number}. {title} {}", rule.repeat(2), rule.repeat(rest));
        self.text(&format!("\n{}\n", Paint::Bold.on(&heading)))?;
        self.say(&format!("{shown}\n"))
    }

    /// Makes room for names of this length.
    pub(crate) fn set_names(&self, width: usize) {
        self.names.set(width);
    }

    /// A sentence of the story.
    pub(crate) fn say(&self, sentence: &str) -> io::Result<()> {
        self.text(&format!("{}\n", wrapped_to(sentence, 0, WIDTH)))
    }

    /// Text that is laid out already.
    pub(crate) fn text(&self, text: &str) -> io::Result<()> {
        if self.is_json {
            return Ok(());
        }
        self.terminal.answer(text)?;
        thread::sleep(self.pause);
        Ok(())
    }

    pub(crate) fn progress(&self, progress: &Progress) -> io::Result<()> {
        let Progress { sign, who, words } = progress;
        let signs = self.terminal.signs;
        let (name, shown, paint) = match sign {
            Sign::Done => ("done", signs.done, Paint::Green),
            Sign::Failed => ("failed", signs.failed, Paint::Red),
            Sign::Undone => ("undone", signs.undone, Paint::Yellow),
            Sign::Doubt => ("doubt", "?", Paint::Yellow),
            Sign::Note => ("note", " ", Paint::Plain),
        };
        self.progress.borrow_mut().push(json!({ "sign": name, "who": who, "words": words }));
        let width = self.names.get();
        let line = wrapped_to(&format!("    {who:width$}  {words}"), width + 6, WIDTH);
        self.text(&format!("  {}{}\n", paint.on(shown), &line[3..]))
    }

    pub(crate) fn note(&self, who: &str, words: impl Into<String>) -> io::Result<()> {
        self.progress(&Progress { sign: Sign::Note, who: who.to_owned(), words: words.into() })
    }

    /// Prints a scene's object for programs, and begins a new one.
    pub(crate) fn close(&self, mut scene: Value) -> io::Result<()> {
        scene["progress"] = self.progress.take().into();
        if self.is_json { self.terminal.answer(&format!("{scene}\n")) } else { Ok(()) }
    }
}
