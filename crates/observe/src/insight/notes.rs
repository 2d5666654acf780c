//! How analytics are saved in the register: one note per day, one for open executions, and a mark with the position
//! they cover. A text too long for one note is split into pieces.
//!
//! Notes belong to one count, identified by its start time. When they cannot be read, or have another format version, a
//! new count starts with the first entry of the ledger and ignores the notes of the previous one.

use rutter_core::id::TenantId;
use rutter_core::insight::day::{CalendarDate, DailyTally};
use rutter_core::insight::open::ProjectionState;
use rutter_core::insight::projection::LedgerProjection;
use rutter_core::port::Error;
use rutter_core::port::register::{Register, RegisterChange, RegisterKind, RegisterWrite};
use rutter_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The format version; raise it whenever the meaning of the notes changes.
const FORM: u32 = 3;
const MARK: &str = "insight";
const OPEN: &str = "open";
/// Each quotation mark takes two bytes inside a note, so a piece has less than half of a note's maximum size.
const PIECE_BYTES: usize = 480 << 10;
/// How often a text is read again when a concurrent write changed its pieces.
const READINGS: u32 = 5;

pub struct InsightNotes {
    tenant: TenantId,
    register: Arc<dyn Register>,
    /// The current count: the time it started.
    counting: AtomicU64,
    /// The version of the mark when it was last read or written.
    version: AtomicU64,
}

/// The position saved so far, and when the next save is due.
#[derive(Debug)]
pub struct WriteSchedule {
    pub position: u64,
    pub due_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct InsightMark {
    form: u32,
    counting: u64,
    place: u64,
}

/// A piece of a text. All pieces of a text have the same count and position.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotePiece {
    counting: u64,
    place: u64,
    pieces: usize,
    text: String,
}

impl InsightNotes {
    pub fn new(tenant: TenantId, register: Arc<dyn Register>) -> InsightNotes {
        InsightNotes { tenant, register, counting: AtomicU64::new(0), version: AtomicU64::new(0) }
    }

    /// The saved state of open executions; starts a new count when there is none or it cannot be used.
    pub async fn begin(&self, size: u64, now: Timestamp) -> Result<ProjectionState, Error> {
        let note = self.register.find(&self.tenant, RegisterKind::Mark, MARK).await?;
        self.version.store(note.as_ref().map_or(0, |note| note.version), Ordering::Relaxed);
        let mark = note.as_ref().and_then(|note| InsightMark::deserialize(&*note.value).ok());
        if let Some(InsightMark { form: FORM, counting, place }) = mark
            && place <= size
        {
            self.counting.store(counting, Ordering::Relaxed);
            let text = match self.text(OPEN).await {
                Ok(text) => text,
                Err(Error::Corrupt(_)) => None,
                Err(error) => return Err(error),
            };
            let open = text.and_then(|text| serde_json::from_str::<ProjectionState>(&text).ok());
            if let Some(open) = open.filter(|open| open.place == place) {
                return Ok(open);
            }
        }
        if note.is_some() {
            tracing::warn!("saved analytics are unusable; they are recounted from the start of the ledger");
        }
        self.begin_anew(now);
        Ok(ProjectionState::default())
    }

    /// Starts a new count, which ignores all notes saved before.
    pub fn begin_anew(&self, now: Timestamp) {
        self.counting.store(u64::try_from(now.0).unwrap_or(0), Ordering::Relaxed);
    }

    /// The tally of a day in this count. Unreadable notes are [`Error::Corrupt`].
    pub async fn day(&self, date: CalendarDate) -> Result<DailyTally, Error> {
        let Some(text) = self.text(&date.to_string()).await? else { return Ok(DailyTally::default()) };
        let damaged = |error| Error::Corrupt(format!("the tally of {date}: {error}"));
        serde_json::from_str(&text).map_err(damaged)
    }

    /// The changes to save, and their size in bytes.
    pub fn changes(&self, fold: &LedgerProjection) -> Result<(Vec<RegisterChange>, u64), Error> {
        let (mut changes, mut bytes) = (Vec::new(), 0);
        let mut put = |id: &str, text: serde_json::Result<String>| {
            let text = text.map_err(|error| Error::Invalid(error.to_string()))?;
            bytes += text.len() as u64;
            changes.extend(self.cut(id, &text, fold.place()));
            Ok::<_, Error>(())
        };
        for (date, day) in fold.changed() {
            put(&date.to_string(), serde_json::to_string(day))?;
        }
        put(OPEN, serde_json::to_string(fold.open()))?;
        let mark = InsightMark { form: FORM, counting: self.counting.load(Ordering::Relaxed), place: fold.place() };
        let mark = RegisterChange::put(RegisterKind::Mark, MARK, json!(mark));
        changes.push(mark.expecting(self.version.load(Ordering::Relaxed)));
        Ok((changes, bytes))
    }

    pub async fn write(&self, changes: Vec<RegisterChange>, at: Timestamp) -> Result<(), Error> {
        self.register.write(RegisterWrite { tenant: self.tenant.clone(), at, changes, record: None }).await?;
        self.version.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn cut(&self, id: &str, text: &str, place: u64) -> Vec<RegisterChange> {
        let (counting, texts) = (self.counting.load(Ordering::Relaxed), pieces_of(text));
        let pieces = texts.len();
        let change = |(number, text): (usize, &&str)| {
            let piece = NotePiece { counting, place, pieces, text: (*text).to_owned() };
            RegisterChange::put(RegisterKind::Tally, &name_of(id, number), json!(piece))
        };
        texts.iter().enumerate().map(change).collect()
    }

    /// Joins the pieces of a text of this count.
    async fn text(&self, id: &str) -> Result<Option<String>, Error> {
        for _ in 0..READINGS {
            let Some(first) = self.piece(id, 0).await? else { return Ok(None) };
            let mut text = first.text;
            let mut is_whole = true;
            for number in 1..first.pieces {
                match self.piece(id, number).await? {
                    Some(next) if next.place == first.place => text += &next.text,
                    Some(_) | None => is_whole = false,
                }
            }
            if is_whole {
                return Ok(Some(text));
            }
        }
        Err(Error::Corrupt(format!("the pieces of tally {id:?} do not match")))
    }

    async fn piece(&self, id: &str, number: usize) -> Result<Option<NotePiece>, Error> {
        let note = self.register.find(&self.tenant, RegisterKind::Tally, &name_of(id, number)).await?;
        let counting = self.counting.load(Ordering::Relaxed);
        let Some(note) = note.filter(|note| note.value["counting"] == counting) else { return Ok(None) };
        let damaged = |error| Error::Corrupt(format!("tally {id:?}: {error}"));
        NotePiece::deserialize(&*note.value).map(Some).map_err(damaged)
    }
}

fn name_of(id: &str, number: usize) -> String {
    if number == 0 { id.to_owned() } else { format!("{id}.{number}") }
}

fn pieces_of(text: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while rest.len() > PIECE_BYTES {
        let at = rest.floor_char_boundary(PIECE_BYTES);
        let (piece, after) = rest.split_at(at);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use rutter_core::limits::NOTE_BYTES_MAX;
    use serde_json::Value;

    #[test]
    fn a_text_is_cut_where_it_becomes_too_long_for_a_note() {
        for (length, pieces) in [(0, 1), (PIECE_BYTES - 1, 1), (PIECE_BYTES, 1), (PIECE_BYTES + 1, 2)] {
            let text = "\"".repeat(length);
            let cut = pieces_of(&text);
            assert_eq!((cut.len(), cut.concat() == text), (pieces, true), "{length}");
            let piece = NotePiece { counting: 1, place: 1, pieces, text: cut[0].to_owned() };
            assert!(Value::to_string(&json!(piece)).len() <= NOTE_BYTES_MAX);
        }
        let text = "ä".repeat(PIECE_BYTES);
        assert_eq!(pieces_of(&text).concat(), text);
    }
}
