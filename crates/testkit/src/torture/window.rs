//! Where a kill is aimed: anywhere in time, right behind an effect, or right behind a write to the journal.

use crate::chance::Chance;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// A window that never opens is closed after this.
const PATIENCE: Duration = Duration::from_secs(8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    Time(Duration),
    /// After so many lines in the log of the tools, and a little more.
    Effect {
        lines: u64,
        then: Duration,
    },
    /// After so many changes of the database's log, and a little more.
    Entry {
        writes: u64,
        then: Duration,
    },
}

impl Window {
    /// `pace` is how long a process takes until it writes for the first time; machines differ.
    pub(super) fn draw(pace: Duration, chance: &mut Chance) -> Window {
        let within = |span: Duration, chance: &mut Chance| {
            Duration::from_micros(chance.below(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
        };
        match chance.below(3) {
            0 => Window::Time(within(pace * 3, chance)),
            1 => {
                let lines = 1 + chance.below(12);
                Window::Effect { lines, then: within(Duration::from_millis(15), chance) }
            }
            _ => {
                let writes = 1 + chance.below(15);
                Window::Entry { writes, then: within(Duration::from_millis(6), chance) }
            }
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Window::Time(_) => "time",
            Window::Effect { .. } => "effect",
            Window::Entry { .. } => "entry",
        }
    }
}

/// Looks out for the moment.
#[derive(Debug)]
pub(super) struct Lookout {
    window: Window,
    effects: PathBuf,
    journal: PathBuf,
    effects_were: Look,
    journal_was: Look,
    seen: u64,
    opened: Option<Instant>,
    /// When the journal was first written to.
    pub(super) first_write: Option<Instant>,
}

impl Lookout {
    pub(super) fn new(window: Window, directory: &Path) -> Lookout {
        let (effects, journal) = (directory.join("effects.log"), directory.join("data/rutter.db-wal"));
        let (effects_were, journal_was) = (look(&effects), look(&journal));
        Lookout {
            window,
            effects,
            journal,
            effects_were,
            journal_was,
            seen: 0,
            opened: None,
            first_write: None,
        }
    }

    /// Whether the moment has come for a process that began then.
    pub(super) fn is_open(&mut self, began: Instant) -> bool {
        let (effects, journal) = (look(&self.effects), look(&self.journal));
        let (has_effect, has_write) = (effects != self.effects_were, journal != self.journal_was);
        (self.effects_were, self.journal_was) = (effects, journal);
        if has_write {
            self.first_write.get_or_insert_with(Instant::now);
        }
        let (wanted, is_news, then) = match self.window {
            Window::Time(span) => return began.elapsed() >= span,
            Window::Effect { lines, then } => (lines, has_effect, then),
            Window::Entry { writes, then } => (writes, has_write, then),
        };
        self.seen += u64::from(is_news);
        if self.seen >= wanted {
            self.opened.get_or_insert_with(Instant::now);
        }
        began.elapsed() > PATIENCE || self.opened.is_some_and(|opened| opened.elapsed() >= then)
    }
}

/// A file as it looks from outside. The database's log is written over from its beginning, so its size alone says little.
type Look = Option<(u64, SystemTime)>;

fn look(path: &Path) -> Look {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}
