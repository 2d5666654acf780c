//! An account of a store's requests and replies, held outside the store.
//!
//! Every request is noted before it is sent and again when it is answered, each note on a line of its own. So a process
//! can pass its account to another one and be killed: a request without a reply may have been performed.

use rutter_core::hash::Hash;
use std::collections::BTreeMap;

/// One line of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountNote {
    /// A request about to be sent, under a number unique in this process.
    Asked {
        number: u64,
        what: StoreRequest,
    },
    Answered {
        number: u64,
        answer: StoreAnswer,
    },
    /// The store gave a worker a lease.
    Leased {
        execution: String,
        epoch: u64,
    },
}

/// Names have no spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreRequest {
    Plan {
        id: String,
        hash: Hash,
    },
    /// An opening or an append: these entries from this sequence number on, and the texts of the commands that they
    /// consume.
    Entries {
        execution: String,
        first: u64,
        hashes: Vec<Hash>,
        consumed: Vec<String>,
    },
    /// A command whose text is unique, and shorter than a hash.
    Command {
        execution: String,
        text: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAnswer {
    /// It is written.
    Yes,
    /// It is certainly not written.
    No { code: String },
    /// It is unknown, or there was no reply.
    Maybe,
}

/// Everything noted, by subject.
#[derive(Debug, Default)]
pub struct StoreAccount {
    pub plans: Vec<(String, Hash, StoreAnswer)>,
    pub executions: BTreeMap<String, Vec<HandedEntries>>,
    pub commands: BTreeMap<String, Vec<(String, StoreAnswer)>>,
    /// The newest epoch that was given for each execution.
    pub epochs: BTreeMap<String, u64>,
    asked: BTreeMap<u64, StoreRequest>,
}

/// Entries that were written in one append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedEntries {
    pub first: u64,
    pub hashes: Vec<Hash>,
    pub consumed: Vec<String>,
    pub answer: StoreAnswer,
}

impl HandedEntries {
    /// Each with its sequence number.
    pub fn entries(&self) -> impl Iterator<Item = (u64, &Hash)> {
        (self.first..).zip(&self.hashes)
    }
}

impl StoreAccount {
    pub fn take(&mut self, note: AccountNote) {
        match note {
            AccountNote::Asked { number, what } => {
                self.asked.insert(number, what);
            }
            AccountNote::Answered { number, answer: store_answer } => {
                if let Some(what) = self.asked.remove(&number) {
                    self.close(what, store_answer);
                }
            }
            AccountNote::Leased { execution, epoch } => {
                let newest = self.epochs.entry(execution).or_default();
                *newest = epoch.max(*newest);
            }
        }
    }

    /// The process is gone: requests without a reply may have been performed.
    pub fn end_of_life(&mut self) {
        for what in std::mem::take(&mut self.asked).into_values() {
            self.close(what, StoreAnswer::Maybe);
        }
    }

    /// The number of acknowledged requests.
    pub fn acknowledged(&self) -> usize {
        let plans = self.plans.iter().map(|(_, _, message)| message);
        let entries = self.executions.values().flatten().map(|handed| &handed.answer);
        let commands = self.commands.values().flatten().map(|(_, statement)| statement);
        plans.chain(entries).chain(commands).filter(|message_text| **message_text == StoreAnswer::Yes).count()
    }

    fn close(&mut self, what: StoreRequest, store_answer: StoreAnswer) {
        match what {
            StoreRequest::Plan { id, hash } => self.plans.push((id, hash, store_answer)),
            StoreRequest::Entries { execution, first, hashes, consumed } => {
                let handed = HandedEntries { first, hashes, consumed, answer: store_answer };
                self.executions.entry(execution).or_default().push(handed);
            }
            StoreRequest::Command { execution, text } => {
                self.commands.entry(execution).or_default().push((text, store_answer));
            }
        }
    }
}

impl std::fmt::Display for AccountNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AccountNote::Asked { number, what: StoreRequest::Plan { id, hash } } => {
                write!(f, "plan {number} {id} {hash}")
            }
            AccountNote::Asked { number, what: StoreRequest::Entries { execution, first, hashes, consumed } } => {
                write!(f, "entries {number} {execution} {first}")?;
                hashes.iter().try_for_each(|hash| write!(f, " {hash}"))?;
                consumed.iter().try_for_each(|command| write!(f, " {command}"))
            }
            AccountNote::Asked { number, what: StoreRequest::Command { execution, text } } => {
                write!(f, "command {number} {execution} {text}")
            }
            AccountNote::Answered { number, answer: StoreAnswer::Yes } => write!(f, "yes {number}"),
            AccountNote::Answered { number, answer: StoreAnswer::No { code } } => {
                write!(f, "no {number} {code}")
            }
            AccountNote::Answered { number, answer: StoreAnswer::Maybe } => write!(f, "maybe {number}"),
            AccountNote::Leased { execution, epoch } => write!(f, "leased {execution} {epoch}"),
        }
    }
}

impl AccountNote {
    /// Reads a line; `None` if it is incomplete, as the last line of a killed process may be.
    pub fn read(line: &str) -> Option<AccountNote> {
        let line = line.strip_suffix('\n')?;
        let mut words = line.split(' ');
        let kind = words.next()?;
        if kind == "leased" {
            let execution = words.next()?.to_owned();
            return Some(AccountNote::Leased { execution, epoch: words.next()?.parse().ok()? });
        }
        let number = words.next()?.parse().ok()?;
        let name = words.next().map(str::to_owned);
        let asked = |what| Some(AccountNote::Asked { number, what });
        let answered = |store_answer| Some(AccountNote::Answered { number, answer: store_answer });
        match kind {
            "plan" => asked(StoreRequest::Plan { id: name?, hash: Hash::parse(words.next()?)? }),
            "command" => asked(StoreRequest::Command { execution: name?, text: words.next()?.to_owned() }),
            "entries" => {
                let first = words.next()?.parse().ok()?;
                let (hashes, texts): (Vec<&str>, Vec<&str>) = words.partition(|word| word.len() == 64);
                let hashes = hashes.into_iter().map(Hash::parse).collect::<Option<_>>()?;
                let consumed = texts.into_iter().map(str::to_owned).collect();
                asked(StoreRequest::Entries { execution: name?, first, hashes, consumed })
            }
            "yes" => answered(StoreAnswer::Yes),
            "no" => answered(StoreAnswer::No { code: name? }),
            "maybe" => answered(StoreAnswer::Maybe),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_note_is_read_back_unchanged() {
        let (execution, text) = ("exec_1".to_owned(), "go-1".to_owned());
        let hash = Hash::of(&[b"x"]);
        let asked = |what| AccountNote::Asked { number: 7, what };
        let answered = |store_answer| AccountNote::Answered { number: 7, answer: store_answer };
        let entries =
            |hashes, consumed| StoreRequest::Entries { execution: execution.clone(), first: 3, hashes, consumed };
        let notes = [
            asked(StoreRequest::Plan { id: "plan_1".to_owned(), hash }),
            asked(entries(vec![hash, Hash::ZERO], vec!["a-1".to_owned(), "b".to_owned()])),
            asked(entries(vec![], vec![])),
            asked(StoreRequest::Command { execution: execution.clone(), text }),
            answered(StoreAnswer::Yes),
            answered(StoreAnswer::No { code: "x.full".to_owned() }),
            answered(StoreAnswer::Maybe),
            AccountNote::Leased { execution, epoch: 2 },
        ];
        for note in notes {
            assert_eq!(AccountNote::read(&format!("{note}\n")), Some(note.clone()), "{note}");
            assert_eq!(AccountNote::read(&note.to_string()), None, "{note} without its end");
        }
    }
}
