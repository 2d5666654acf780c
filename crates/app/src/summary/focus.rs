//! The focus of a summary: a name for some kinds of facts, or words to rank facts by.

use super::{FactKind, SummaryFact};

pub enum SummaryFocus {
    /// All facts, in the order of [`FactKind`].
    Even,
    /// Only these kinds.
    Only(&'static [FactKind]),
    /// Facts that contain more of these words come first.
    Words(Vec<String>),
}

/// The outcome, and everything that was not routine.
const KEY_POINTS: &[FactKind] = &[
    FactKind::Outcome,
    FactKind::Question,
    FactKind::Remains,
    FactKind::Doubt,
    FactKind::Failure,
    FactKind::Compensation,
    FactKind::Deviation,
];
/// Facts that need an action.
const ACTIONABLE: &[FactKind] = &[FactKind::Outcome, FactKind::Question, FactKind::Remains, FactKind::Deviation];
/// For the person responsible: the outcome, the cost and the decisions.
const EXECUTIVE: &[FactKind] = &[
    FactKind::Outcome,
    FactKind::Question,
    FactKind::Remains,
    FactKind::Approval,
    FactKind::Decision,
    FactKind::Spent,
];

impl SummaryFocus {
    pub fn read(focus: &str) -> SummaryFocus {
        match focus.trim() {
            "" | "comprehensive" => SummaryFocus::Even,
            "key_points" => SummaryFocus::Only(KEY_POINTS),
            "actionable_items" => SummaryFocus::Only(ACTIONABLE),
            "executive" => SummaryFocus::Only(EXECUTIVE),
            words => {
                let words = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
                SummaryFocus::Words(words.map(str::to_lowercase).collect())
            }
        }
    }

    pub fn wants(&self, fact: &SummaryFact) -> bool {
        match self {
            SummaryFocus::Only(kinds) => kinds.contains(&fact.kind),
            SummaryFocus::Even | SummaryFocus::Words(_) => true,
        }
    }

    /// Lower ranks come first.
    pub fn rank(&self, fact: &SummaryFact) -> usize {
        let SummaryFocus::Words(words) = self else { return fact.kind as usize };
        let text = format!("{} {}", fact.text, fact.kind.heading()).to_lowercase();
        let hits = words.iter().filter(|word| text.contains(word.as_str())).count();
        // The outcome is included whatever the words are.
        let missed = if fact.kind == FactKind::Outcome { 0 } else { words.len() - hits };
        missed * 100 + fact.kind as usize
    }

    /// Whether the order of facts is the reader's, instead of by time or plan.
    pub fn is_ranked(&self) -> bool {
        matches!(self, SummaryFocus::Words(_))
    }
}
