//! What a store was asked and what it answered, kept outside it.
//!
//! Everything is noted before it is asked and again when it is answered, each note on a line of its own. So a
//! process can tell its account to another one and be killed: what was asked and never answered may have happened.

use rutter_core::hash::Hash;
use std::collections::BTreeMap;

/// One line of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// About to be asked, under a number that no other question of this process has.
    Asked {
        number: u64,
        what: What,
    },
    Answered {
        number: u64,
        said: Said,
    },
    /// The store gave a worker the right to write.
    Leased {
        execution: String,
        epoch: u64,
    },
}

/// Names have no spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Plan {
        id: String,
        hash: Hash,
    },
    /// An opening or an append: these entries from this sequence number on, and the texts of the letters that
    /// they answer.
    Entries {
        execution: String,
        first: u64,
        hashes: Vec<Hash>,
        consumed: Vec<String>,
    },
    /// A letter whose text is like no other, and shorter than a hash.
    Letter {
        execution: String,
        text: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It is written.
    Yes,
    /// It is certainly not written.
    No { code: String },
    /// Nobody knows, or nobody was there to hear it.
    Maybe,
}

/// Everything noted, by what it is about.
#[derive(Debug, Default)]
pub struct Account {
    pub plans: Vec<(String, Hash, Said)>,
    pub executions: BTreeMap<String, Vec<Handed>>,
    pub letters: BTreeMap<String, Vec<(String, Said)>>,
    /// The newest epoch that was given for each execution.
    pub epochs: BTreeMap<String, u64>,
    asked: BTreeMap<u64, What>,
}

/// Entries that were handed over in one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handed {
    pub first: u64,
    pub hashes: Vec<Hash>,
    pub consumed: Vec<String>,
    pub said: Said,
}

impl Handed {
    /// Each with its sequence number.
    pub fn entries(&self) -> impl Iterator<Item = (u64, &Hash)> {
        (self.first..).zip(&self.hashes)
    }
}

impl Account {
    pub fn take(&mut self, note: Note) {
        match note {
            Note::Asked { number, what } => {
                self.asked.insert(number, what);
            }
            Note::Answered { number, said } => {
                if let Some(what) = self.asked.remove(&number) {
                    self.close(what, said);
                }
            }
            Note::Leased { execution, epoch } => {
                let newest = self.epochs.entry(execution).or_default();
                *newest = epoch.max(*newest);
            }
        }
    }

    /// Whoever asked is gone: what was not answered may have happened.
    pub fn end_of_life(&mut self) {
        for what in std::mem::take(&mut self.asked).into_values() {
            self.close(what, Said::Maybe);
        }
    }

    /// How often the store said yes.
    pub fn acknowledged(&self) -> usize {
        let plans = self.plans.iter().map(|(_, _, said)| said);
        let entries = self.executions.values().flatten().map(|handed| &handed.said);
        let letters = self.letters.values().flatten().map(|(_, said)| said);
        plans.chain(entries).chain(letters).filter(|said| **said == Said::Yes).count()
    }

    fn close(&mut self, what: What, said: Said) {
        match what {
            What::Plan { id, hash } => self.plans.push((id, hash, said)),
            What::Entries { execution, first, hashes, consumed } => {
                let handed = Handed { first, hashes, consumed, said };
                self.executions.entry(execution).or_default().push(handed);
            }
            What::Letter { execution, text } => {
                self.letters.entry(execution).or_default().push((text, said));
            }
        }
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Note::Asked { number, what: What::Plan { id, hash } } => write!(f, "plan {number} {id} {hash}"),
            Note::Asked { number, what: What::Entries { execution, first, hashes, consumed } } => {
                write!(f, "entries {number} {execution} {first}")?;
                hashes.iter().try_for_each(|hash| write!(f, " {hash}"))?;
                consumed.iter().try_for_each(|letter| write!(f, " {letter}"))
            }
            Note::Asked { number, what: What::Letter { execution, text } } => {
                write!(f, "letter {number} {execution} {text}")
            }
            Note::Answered { number, said: Said::Yes } => write!(f, "yes {number}"),
            Note::Answered { number, said: Said::No { code } } => write!(f, "no {number} {code}"),
            Note::Answered { number, said: Said::Maybe } => write!(f, "maybe {number}"),
            Note::Leased { execution, epoch } => write!(f, "leased {execution} {epoch}"),
        }
    }
}

impl Note {
    /// Reads a line; `None` if it is not a whole one, as the last line of a killed process may be.
    pub fn read(line: &str) -> Option<Note> {
        let line = line.strip_suffix('\n')?;
        let mut words = line.split(' ');
        let kind = words.next()?;
        if kind == "leased" {
            let execution = words.next()?.to_owned();
            return Some(Note::Leased { execution, epoch: words.next()?.parse().ok()? });
        }
        let number = words.next()?.parse().ok()?;
        let name = words.next().map(str::to_owned);
        let asked = |what| Some(Note::Asked { number, what });
        let answered = |said| Some(Note::Answered { number, said });
        match kind {
            "plan" => asked(What::Plan { id: name?, hash: Hash::parse(words.next()?)? }),
            "letter" => asked(What::Letter { execution: name?, text: words.next()?.to_owned() }),
            "entries" => {
                let first = words.next()?.parse().ok()?;
                let (hashes, texts): (Vec<&str>, Vec<&str>) = words.partition(|word| word.len() == 64);
                let hashes = hashes.into_iter().map(Hash::parse).collect::<Option<_>>()?;
                let consumed = texts.into_iter().map(str::to_owned).collect();
                asked(What::Entries { execution: name?, first, hashes, consumed })
            }
            "yes" => answered(Said::Yes),
            "no" => answered(Said::No { code: name? }),
            "maybe" => answered(Said::Maybe),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_note_is_read_as_it_was_written() {
        let (execution, text) = ("exec_1".to_owned(), "go-1".to_owned());
        let hash = Hash::of(&[b"x"]);
        let asked = |what| Note::Asked { number: 7, what };
        let answered = |said| Note::Answered { number: 7, said };
        let entries =
            |hashes, consumed| What::Entries { execution: execution.clone(), first: 3, hashes, consumed };
        let notes = [
            asked(What::Plan { id: "plan_1".to_owned(), hash }),
            asked(entries(vec![hash, Hash::ZERO], vec!["a-1".to_owned(), "b".to_owned()])),
            asked(entries(vec![], vec![])),
            asked(What::Letter { execution: execution.clone(), text }),
            answered(Said::Yes),
            answered(Said::No { code: "x.full".to_owned() }),
            answered(Said::Maybe),
            Note::Leased { execution, epoch: 2 },
        ];
        for note in notes {
            assert_eq!(Note::read(&format!("{note}\n")), Some(note.clone()), "{note}");
            assert_eq!(Note::read(&note.to_string()), None, "{note} without its end");
        }
    }
}
