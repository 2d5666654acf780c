//! The output of the demo: sentences and lines of progress on the terminal, or one object per scene for programs.

use crate::table::{CellColor, wrapped_to};
use crate::terminal::Terminal;
use rutter_app::view::ActorView;
use rutter_core::journal::describe::describe;
use rutter_core::journal::event::EventRecord;
use rutter_core::time::calendar::utc;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io;
use std::thread;
use std::time::Duration;

/// The width of the output.
pub(crate) const WIDTH: usize = 80;

#[derive(Debug)]
pub(crate) struct DemoOutput {
    pub(crate) terminal: Terminal,
    is_json: bool,
    pause: Duration,
    /// The events of this scene, for programs.
    events: RefCell<Vec<Value>>,
}

impl DemoOutput {
    pub(crate) fn new(terminal: Terminal, is_json: bool, pause: Duration) -> DemoOutput {
        DemoOutput { terminal, is_json, pause, events: RefCell::default() }
    }

    pub(crate) fn open(&self, number: u32, title: &str, description: &str) -> io::Result<()> {
        let rule = self.terminal.signs.rule;
        let rest = WIDTH.saturating_sub(title.chars().count() + 7);
        let heading = format!("{} {number}. {title} {}", rule.repeat(2), rule.repeat(rest));
        self.text(&format!("\n{}\n", CellColor::Bold.on(&heading)))?;
        self.sentence(&format!("{description}\n"))
    }

    /// Prints a sentence, wrapped.
    pub(crate) fn sentence(&self, sentence: &str) -> io::Result<()> {
        self.text(&format!("{}\n", wrapped_to(sentence, 0, WIDTH)))
    }

    /// Prints text that is already laid out.
    pub(crate) fn text(&self, text: &str) -> io::Result<()> {
        if self.is_json {
            return Ok(());
        }
        self.terminal.answer(text)?;
        thread::sleep(self.pause);
        Ok(())
    }

    /// Prints a line of an execution's progress.
    pub(crate) fn progress(&self, line: &str) -> io::Result<()> {
        self.text(&format!("{}\n", wrapped_to(line, 4, WIDTH)))
    }

    /// Prints a refusal as a line of progress.
    pub(crate) fn refusal(&self, words: &str) -> io::Result<()> {
        self.progress(&format!("  {} {words}", CellColor::Red.on(self.terminal.signs.failed)))
    }

    /// Prints a remark of the demo between lines of progress.
    pub(crate) fn note(&self, words: &str) -> io::Result<()> {
        self.progress(&format!("    {words}"))
    }

    /// Keeps an event of this scene for programs, under the names of a journal entry.
    pub(crate) fn record(&self, record: &EventRecord) {
        let description = describe(&record.event).at(record.at);
        let step = description.subject.as_ref().map(|subject| subject.part.to_string());
        let event = json!({ "at": utc(record.at), "actor": ActorView::of(&record.actor), "kind": record.event.kind(),
            "step": step, "text": description.sentence() });
        self.events.borrow_mut().push(event);
    }

    /// Prints a scene's object for programs, and begins a new one.
    pub(crate) fn close(&self, mut scene: Value) -> io::Result<()> {
        scene["events"] = self.events.take().into();
        if self.is_json { self.terminal.answer(&format!("{scene}\n")) } else { Ok(()) }
    }
}
