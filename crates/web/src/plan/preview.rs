//! The preview: per step what can be undone and its guarantee, and what each failure leads to.

use rutter_core::id::StepId;
use rutter_core::preview::{GuaranteeKind, PlanPreview, ScenarioOutcome, UndoCoverage, WhatIfScenario};

/// Rows shown; of a larger plan only the first.
const ROWS_MAX: usize = 300;

pub(super) struct StepPreviewCard {
    pub(super) step: String,
    pub(super) href: String,
    pub(super) undo: &'static str,
    pub(super) undo_tone: &'static str,
    pub(super) undo_sign: &'static str,
    pub(super) why: String,
    pub(super) guarantee: &'static str,
    pub(super) in_doubt: String,
    pub(super) ends: &'static str,
}

pub(super) fn cards(preview: &PlanPreview, href: &dyn Fn(&str) -> String) -> Vec<StepPreviewCard> {
    let card = |(card, what_if): (&rutter_core::preview::StepPreview, &WhatIfScenario)| {
        let (undo, undo_tone, undo_sign) = match card.undo.coverage {
            UndoCoverage::Undoable => ("undoable", "ok", "↩"),
            UndoCoverage::Partly => ("partly", "warn", "±"),
            UndoCoverage::NotUndoable => ("not undoable", "bad", "✗"),
            UndoCoverage::NothingToUndo => ("nothing to undo", "muted", "·"),
        };
        StepPreviewCard {
            step: card.step.to_string(),
            href: href(card.step.as_str()),
            undo,
            undo_tone,
            undo_sign,
            why: card.undo.reason.clone(),
            guarantee: match card.guarantee.kind {
                GuaranteeKind::NoEffect => "no effect",
                GuaranteeKind::AtLeastOnce => "at least once",
                GuaranteeKind::Deduplicated => "once (idempotency key)",
                GuaranteeKind::AtMostOnce => "at most once",
            },
            in_doubt: card.guarantee.in_doubt.clone(),
            ends: ends(what_if.ends),
        }
    };
    preview.steps.iter().zip(&preview.what_if).take(ROWS_MAX).map(card).collect()
}

fn ends(ending: ScenarioOutcome) -> &'static str {
    match ending {
        ScenarioOutcome::WaitsForDecision => "waits for a decision",
        ScenarioOutcome::Failed => "failed",
        ScenarioOutcome::Partial => "partial",
        ScenarioOutcome::Compensated => "compensated",
    }
}

/// The scenario of one failing step, in full.
pub(super) struct WhatIfCard {
    pub(super) step: String,
    pub(super) ends: &'static str,
    pub(super) lists: Vec<(&'static str, String)>,
}

pub(super) fn chosen(preview: &PlanPreview, step: &str) -> Option<WhatIfCard> {
    let what_if = preview.what_if.iter().find(|what_if| what_if.step.as_str() == step)?;
    let named = |steps: &[StepId]| steps.iter().map(StepId::as_str).collect::<Vec<_>>().join(", ");
    let lists = [
        ("Completed before", named(&what_if.completed)),
        ("Continue", named(&what_if.continue_with)),
        ("Wait for the decision", named(&what_if.held)),
        ("Cancelled", named(&what_if.cancelled)),
        ("Skipped", named(&what_if.skipped)),
        ("Undone automatically", named(&what_if.undone)),
        ("Can be undone", named(&what_if.undoable)),
        ("Cannot be undone", named(&what_if.remains)),
    ];
    let lists = lists.into_iter().filter(|(_, steps)| !steps.is_empty()).collect();
    Some(WhatIfCard { step: step.to_owned(), ends: ends(what_if.ends), lists })
}
