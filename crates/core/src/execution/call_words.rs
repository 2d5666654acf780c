//! How a call of a part and what came of it are named: the same words in every question, list and answer.

use super::view::{EffectSnapshot, PendingQuestion, SurpriseKind};
use crate::id::PartId;
use crate::journal::event::CallSide;
use crate::text::{cut, escape_hidden, listed};
use crate::time::calendar::utc_seconds;
use serde_json::Value;
use std::fmt::Write;

/// The length of parameters and results in a sentence, and how many effects it names.
const VALUE_CHARS_MAX: usize = 160;
const EFFECTS_MAX: usize = 4;

/// `charge`, `the compensation of charge`, `the fallback of charge`.
pub fn name_of_call(part: &PartId, side: CallSide) -> String {
    match side {
        CallSide::Do => part.to_string(),
        CallSide::Undo => format!("the compensation of {part}"),
        CallSide::Fallback => format!("the fallback of {part}"),
        CallSide::Probe => format!("the probe of {part}"),
    }
}

impl PendingQuestion {
    /// The call in doubt, as a person looks for it outside: `attempt 1 of payments.charge, sent 2026-03-01T09:00:00Z with
    /// {"amount":5}, key 5f2c…`. Parameters have at most so many characters.
    pub fn doubtful_call(&self, chars_max: usize) -> Option<String> {
        let PendingQuestion::Doubt { attempt, tool, parameters, key, sent_at, .. } = self else { return None };
        let mut words = format!("attempt {attempt}");
        let mut add = |text: String| words.push_str(&text);
        if let Some(tool) = tool {
            add(format!(" of {tool}"));
        }
        if let Some(sent_at) = sent_at {
            add(format!(", sent {}", utc_seconds(*sent_at)));
        }
        if let Some(parameters) = parameters {
            add(format!(" with {}", shown(parameters, chars_max)));
        }
        if let Some(key) = key {
            add(format!(", key {key}"));
        }
        Some(words)
    }

    /// What a late answer says against what was settled, with the results of both.
    pub fn surprise_words(&self) -> Option<String> {
        let PendingQuestion::SecondEffect { part, surprise, effects, .. } = self else { return None };
        let names: Vec<String> = effects.iter().map(effect_words).collect();
        let effects = listed(&names, EFFECTS_MAX);
        Some(match surprise {
            SurpriseKind::Second => format!("{part} took effect more than once ({effects})"),
            SurpriseKind::Only => format!("{part} took effect although it had failed ({effects})"),
            SurpriseKind::OtherResult => format!("the tool of {part} contradicts the result given by hand ({effects})"),
        })
    }
}

/// `attempt 1, answered late: {"id":"charge-1"}`
fn effect_words(effect: &EffectSnapshot) -> String {
    let mut words = match effect.side {
        _ if effect.by_hand => "by hand".to_owned(),
        CallSide::Fallback => format!("attempt {} of the fallback", effect.attempt),
        _ => format!("attempt {}", effect.attempt),
    };
    if effect.is_late {
        words.push_str(", answered late");
    }
    let result = effect.result.as_ref().filter(|result| !result.is_null());
    let result = result.map_or_else(|| "result unknown".to_owned(), |result| shown(result, VALUE_CHARS_MAX));
    write!(words, ": {result}").expect("writing to a string cannot fail");
    words
}

fn shown(value: &Value, chars_max: usize) -> String {
    escape_hidden(&cut(&value.to_string(), chars_max))
}
