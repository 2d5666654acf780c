//! How counts are written down: one note for each day, one for what is under way, and a mark that says how far they
//! reach. What is too long for one note is cut into several.
//!
//! Notes belong to a counting. When the notes cannot be read, or were written in another form, the next counting begins
//! with the first entry of the ledger, and the days of the last one are passed over.

use rutter_core::id::TenantId;
use rutter_core::insight::day::{Date, Day};
use rutter_core::insight::fold::Fold;
use rutter_core::insight::open::Open;
use rutter_core::port::Error;
use rutter_core::port::register::{Change, Changes, Kind, Register};
use rutter_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Changes whenever days or what is under way are counted in another way.
const FORM: u32 = 2;
const MARK: &str = "insight";
const OPEN: &str = "open";
/// Quotation marks take two bytes each inside a note, so a piece is less than half of what a note may have.
const PIECE_BYTES: usize = 480 << 10;
/// How often a note is read again that is being changed.
const READINGS: u32 = 5;

pub(super) struct Notes {
    tenant: TenantId,
    register: Arc<dyn Register>,
    /// Which counting this is: when it began.
    counting: AtomicU64,
    /// Of the mark, as it was last seen.
    version: AtomicU64,
}

/// How far was written, and when to write again.
#[derive(Debug)]
pub(super) struct Kept {
    pub place: u64,
    pub due_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mark {
    form: u32,
    counting: u64,
    place: u64,
}

/// A piece of a text. All pieces of a text are of one counting and one place.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Piece {
    counting: u64,
    place: u64,
    pieces: usize,
    text: String,
}

impl Notes {
    pub fn new(tenant: TenantId, register: Arc<dyn Register>) -> Notes {
        Notes { tenant, register, counting: AtomicU64::new(0), version: AtomicU64::new(0) }
    }

    /// What was under way when it was last written; a new counting when that is not to be used.
    pub async fn begin(&self, size: u64, now: Timestamp) -> Result<Open, Error> {
        let note = self.register.find(&self.tenant, Kind::Mark, MARK).await?;
        self.version.store(note.as_ref().map_or(0, |note| note.version), Ordering::Relaxed);
        let mark = note.as_ref().and_then(|note| Mark::deserialize(&*note.value).ok());
        if let Some(Mark { form: FORM, counting, place }) = mark
            && place <= size
        {
            self.counting.store(counting, Ordering::Relaxed);
            let text = match self.text(OPEN).await {
                Ok(text) => text,
                Err(Error::Corrupt(_)) => None,
                Err(error) => return Err(error),
            };
            let open = text.and_then(|text| serde_json::from_str::<Open>(&text).ok());
            if let Some(open) = open.filter(|open| open.place == place) {
                return Ok(open);
            }
        }
        if note.is_some() {
            tracing::warn!("the counts that were written cannot be used; everything is counted again");
        }
        self.begin_anew(now);
        Ok(Open::default())
    }

    /// Another counting, for which nothing that was written counts.
    pub fn begin_anew(&self, now: Timestamp) {
        self.counting.store(u64::try_from(now.0).unwrap_or(0), Ordering::Relaxed);
    }

    /// What was counted on a day in this counting. What cannot be read is [`Error::Corrupt`].
    pub async fn day(&self, date: Date) -> Result<Day, Error> {
        let Some(text) = self.text(&date.to_string()).await? else { return Ok(Day::default()) };
        let damaged = |error| Error::Corrupt(format!("the counts of {date}: {error}"));
        serde_json::from_str(&text).map_err(damaged)
    }

    /// What has to be written, and how many bytes that are.
    pub fn changes(&self, fold: &Fold) -> Result<(Vec<Change>, u64), Error> {
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
        let mark = Mark { form: FORM, counting: self.counting.load(Ordering::Relaxed), place: fold.place() };
        let mark = Change::put(Kind::Mark, MARK, json!(mark));
        changes.push(mark.expecting(self.version.load(Ordering::Relaxed)));
        Ok((changes, bytes))
    }

    pub async fn write(&self, changes: Vec<Change>, at: Timestamp) -> Result<(), Error> {
        self.register.write(Changes { tenant: self.tenant.clone(), at, changes, record: None }).await?;
        self.version.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn cut(&self, id: &str, text: &str, place: u64) -> Vec<Change> {
        let (counting, texts) = (self.counting.load(Ordering::Relaxed), pieces_of(text));
        let pieces = texts.len();
        let change = |(number, text): (usize, &&str)| {
            let piece = Piece { counting, place, pieces, text: (*text).to_owned() };
            Change::put(Kind::Tally, &name_of(id, number), json!(piece))
        };
        texts.iter().enumerate().map(change).collect()
    }

    /// A text of this counting put together again.
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
        Err(Error::Corrupt(format!("the counts {id:?} do not fit together")))
    }

    async fn piece(&self, id: &str, number: usize) -> Result<Option<Piece>, Error> {
        let note = self.register.find(&self.tenant, Kind::Tally, &name_of(id, number)).await?;
        let counting = self.counting.load(Ordering::Relaxed);
        let Some(note) = note.filter(|note| note.value["counting"] == counting) else { return Ok(None) };
        let damaged = |error| Error::Corrupt(format!("the counts {id:?}: {error}"));
        Piece::deserialize(&*note.value).map(Some).map_err(damaged)
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
            let piece = Piece { counting: 1, place: 1, pieces, text: cut[0].to_owned() };
            assert!(Value::to_string(&json!(piece)).len() <= NOTE_BYTES_MAX);
        }
        let text = "ä".repeat(PIECE_BYTES);
        assert_eq!(pieces_of(&text).concat(), text);
    }
}
