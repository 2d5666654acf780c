//! The aim of a kill: at any time, right after an effect, or right after a write to the journal.

use crate::chance::SeededRandom;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// A window that has not opened after this is given up.
const PATIENCE: Duration = Duration::from_secs(8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KillWindow {
    Time(Duration),
    /// After this many lines in the tools' log, and a little more.
    Effect {
        lines: u64,
        then: Duration,
    },
    /// After this many changes of the database's log, and a little more.
    Entry {
        writes: u64,
        then: Duration,
    },
}

impl KillWindow {
    /// `pace` is how long a process takes until its first write; machines differ.
    pub(super) fn draw(pace: Duration, chance: &mut SeededRandom) -> KillWindow {
        let within = |span: Duration, chance: &mut SeededRandom| {
            Duration::from_micros(chance.below(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
        };
        match chance.below(3) {
            0 => KillWindow::Time(within(pace * 3, chance)),
            1 => {
                let lines = 1 + chance.below(12);
                KillWindow::Effect { lines, then: within(Duration::from_millis(15), chance) }
            }
            _ => {
                let writes = 1 + chance.below(15);
                KillWindow::Entry { writes, then: within(Duration::from_millis(6), chance) }
            }
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            KillWindow::Time(_) => "time",
            KillWindow::Effect { .. } => "effect",
            KillWindow::Entry { .. } => "entry",
        }
    }
}

/// Watches for the moment.
#[derive(Debug)]
pub(super) struct WindowWatcher {
    window: KillWindow,
    effects: PathBuf,
    journal: PathBuf,
    effects_were: FileState,
    journal_was: FileState,
    seen: u64,
    opened: Option<Instant>,
    /// When the journal was first written to.
    pub(super) first_write: Option<Instant>,
}

impl WindowWatcher {
    pub(super) fn new(window: KillWindow, directory: &Path) -> WindowWatcher {
        let (effects, journal) = (directory.join("effects.log"), directory.join("data/rutter.db-wal"));
        let (effects_were, journal_was) = (look(&effects), look(&journal));
        WindowWatcher { window, effects, journal, effects_were, journal_was, seen: 0, opened: None, first_write: None }
    }

    /// Whether the moment has come for a process that started at `began`.
    pub(super) fn is_open(&mut self, began: Instant) -> bool {
        let (effects, journal) = (look(&self.effects), look(&self.journal));
        let (has_effect, has_write) = (effects != self.effects_were, journal != self.journal_was);
        (self.effects_were, self.journal_was) = (effects, journal);
        if has_write {
            self.first_write.get_or_insert_with(Instant::now);
        }
        let (wanted, is_news, then) = match self.window {
            KillWindow::Time(span) => return began.elapsed() >= span,
            KillWindow::Effect { lines, then } => (lines, has_effect, then),
            KillWindow::Entry { writes, then } => (writes, has_write, then),
        };
        self.seen += u64::from(is_news);
        if self.seen >= wanted {
            self.opened.get_or_insert_with(Instant::now);
        }
        began.elapsed() > PATIENCE || self.opened.is_some_and(|opened| opened.elapsed() >= then)
    }
}

/// The visible state of a file. The database's log is overwritten from its beginning, so its size alone says little.
type FileState = Option<(u64, SystemTime)>;

fn look(path: &Path) -> FileState {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}
