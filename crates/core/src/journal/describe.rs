//! Describes an event in one sentence for every surface, with the fragments it consists of.
//!
//! Only [`describe`] turns an event into a sentence. A surface with a column for the step uses
//! [`Description::brief`]; one without a column for the actor adds it with [`Description::by`]. Text from tools, agents
//! and people is a [`Fragment::Quote`]: data, never part of our own text.

mod sentence;
mod subject;

pub use sentence::describe;
pub use subject::EventSubject;

use super::event::{AttemptFollowUp, EventRecord};
use crate::actor::Actor;
use crate::text::{cut, escape_hidden, quoted};
use crate::time::Timestamp;
use crate::time::calendar::utc;
use std::fmt;

/// Names of actors, tools and plans are cut to this length.
const NAME_CHARS_MAX: usize = 200;

/// An event as a sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The name of the variant as stored: `attempt_failed`.
    pub kind: &'static str,
    pub topic: EventTopic,
    pub tone: EventTone,
    /// The step the event is about, if it is about one.
    pub subject: Option<EventSubject>,
    /// The sentence lacks its grammatical subject: the actor of the entry.
    pub is_act: bool,
    /// The follow-up of an attempt that did not succeed.
    pub then: Option<AttemptFollowUp>,
    pub fragments: Vec<Fragment>,
    actor: Option<String>,
    at: Option<Timestamp>,
}

/// The topic of an event, for headings and filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventTopic {
    /// Steps and attempts proceed as planned.
    Progress,
    Approval,
    /// Whether a call took effect is unknown, or was found out.
    Doubt,
    Failure,
    Compensation,
    /// An answer to a question, or a recorded decision.
    Decision,
    /// A recorded action, a question of a tool, or its answer.
    Action,
    /// Pausing, cancelling, skipping, replanning, handing over.
    Control,
    Deviation,
    /// How the execution ended.
    Outcome,
    /// Concerns the ledger as a whole.
    Ledger,
}

/// How prominently to show an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventTone {
    Neutral,
    Good,
    /// A person should look, or must answer.
    Attention,
    Bad,
}

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Fragment {
    Words(String),
    /// The subject of the sentence; left out where the surface shows it anyway.
    Subject(String),
    /// A hash or an id, for readers who compare; left out of short forms.
    Reference(String),
    /// Text from a tool, an agent or a person.
    Quote(String),
    /// A time in the future.
    Due(Timestamp),
}

impl Description {
    /// Adds the actor, in sentences that describe an act.
    #[must_use]
    pub fn by(mut self, actor: &Actor) -> Description {
        self.actor = Some(cut(&escape_hidden(&actor.to_string()), NAME_CHARS_MAX));
        self
    }

    /// Prints times relative to this one: "in 2s" instead of the date.
    #[must_use]
    pub fn at(mut self, at: Timestamp) -> Description {
        self.at = Some(at);
        self
    }

    /// Returns the whole sentence on one line, without a full stop: `attempt 2 of charge was lost; …`.
    pub fn sentence(&self) -> String {
        self.sentence_within(usize::MAX)
    }

    /// Returns the whole sentence, each quotation cut to this length.
    pub fn sentence_within(&self, quote_chars_max: usize) -> String {
        self.write(&self.fragments.iter().collect::<Vec<_>>(), quote_chars_max)
    }

    /// Returns the sentence without its subject and without references, for a table or a graph that names the step
    /// itself: `was lost; …`.
    pub fn brief(&self, quote_chars_max: usize) -> String {
        let is_in = |fragment: &&Fragment| !matches!(fragment, Fragment::Subject(_) | Fragment::Reference(_));
        self.write(&self.fragments.iter().filter(is_in).collect::<Vec<_>>(), quote_chars_max)
    }

    /// Returns the sentence, with the step's short name if the sentence begins with the step:
    /// `charge, attempt 2 was lost; …`.
    pub fn compact(&self, quote_chars_max: usize) -> String {
        match (&self.subject, self.fragments.first()) {
            (Some(subject), Some(Fragment::Subject(_))) => {
                format!("{} {}", escape_hidden(&subject.label()), self.brief(quote_chars_max))
            }
            _ => self.sentence_within(quote_chars_max),
        }
    }

    fn write(&self, fragments: &[&Fragment], quote_chars_max: usize) -> String {
        let mut text = String::new();
        if let Some(actor) = self.actor.as_ref().filter(|_| self.is_act) {
            text.push_str(actor);
            text.push(' ');
        }
        for fragment in fragments {
            match fragment {
                Fragment::Words(words) => text.push_str(words),
                Fragment::Subject(words) | Fragment::Reference(words) => text.push_str(words),
                Fragment::Quote(quote) => text.push_str(&quoted(quote, quote_chars_max)),
                Fragment::Due(due) => match self.at {
                    Some(at) => text.push_str(&format!("in {}", due.since(at))),
                    None => text.push_str(&format!("at {}", utc(*due))),
                },
            }
        }
        text.trim().to_owned()
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence())
    }
}

impl<P> EventRecord<P> {
    /// Describes the event with its actor and time.
    pub fn describe(&self) -> Description {
        describe(&self.event).by(&self.actor).at(self.at)
    }
}
