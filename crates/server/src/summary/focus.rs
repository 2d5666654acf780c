//! What a reader wants to know first: a few names that choose kinds of facts, or words that facts are ranked by.

use super::{Fact, Kind};

pub(super) enum Focus {
    /// Everything, in the order of [`Kind`].
    Even,
    /// Only these kinds.
    Only(&'static [Kind]),
    /// Facts that have more of these words come first.
    Words(Vec<String>),
}

/// Outcome, and whatever did not go by itself.
const KEY_POINTS: &[Kind] = &[
    Kind::Outcome,
    Kind::Question,
    Kind::Remains,
    Kind::Doubt,
    Kind::Failure,
    Kind::Compensation,
    Kind::Deviation,
];
/// What somebody still has to do something about.
const ACTIONABLE: &[Kind] = &[Kind::Outcome, Kind::Question, Kind::Remains, Kind::Deviation];
/// For somebody who answers for it: how it ended, what it cost, who decided.
const EXECUTIVE: &[Kind] =
    &[Kind::Outcome, Kind::Question, Kind::Remains, Kind::Approval, Kind::Decision, Kind::Spent];

impl Focus {
    pub(super) fn read(focus: &str) -> Focus {
        match focus.trim() {
            "" | "comprehensive" => Focus::Even,
            "key_points" => Focus::Only(KEY_POINTS),
            "actionable_items" => Focus::Only(ACTIONABLE),
            "executive" => Focus::Only(EXECUTIVE),
            words => {
                let words = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
                Focus::Words(words.map(str::to_lowercase).collect())
            }
        }
    }

    pub(super) fn wants(&self, fact: &Fact) -> bool {
        match self {
            Focus::Only(kinds) => kinds.contains(&fact.kind),
            Focus::Even | Focus::Words(_) => true,
        }
    }

    /// The lower, the sooner.
    pub(super) fn rank(&self, fact: &Fact) -> usize {
        let Focus::Words(words) = self else { return fact.kind as usize };
        let text = format!("{} {}", fact.text, fact.kind.heading()).to_lowercase();
        let hits = words.iter().filter(|word| text.contains(word.as_str())).count();
        // The outcome is told whatever the words are.
        let missed = if fact.kind == Kind::Outcome { 0 } else { words.len() - hits };
        missed * 100 + fact.kind as usize
    }

    /// Whether the order of facts is the reader's, and not the time's or the plan's.
    pub(super) fn is_ranked(&self) -> bool {
        matches!(self, Focus::Words(_))
    }
}
