//! The result of verifying a ledger.

use rutter_core::journal::verify::{Assurance, VerificationFault};
use rutter_core::port::proof::LedgerCheck;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Verdict")]
pub struct VerdictView {
    pub is_clean: bool,
    /// The assurance: `V0`, `V1` or `V2`.
    pub level: String,
    /// The result as a sentence.
    pub verdict: String,
    /// The first entry that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<LedgerFaultView>,
    /// Lines of the export that were read.
    pub lines: u64,
    pub entries: u64,
    pub executions: u64,
    pub checkpoints: u64,
    pub erased: u64,
    pub removed: u64,
    /// Entries covered by a signed checkpoint, and those that are not.
    pub protected: u64,
    pub uncovered: u64,
    /// Rows of the store that contradict the journals.
    pub rows: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "LedgerFault")]
pub struct LedgerFaultView {
    /// The line of the export; 0 if there is none.
    pub line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    pub message: String,
}

impl VerdictView {
    pub fn of(checked: &LedgerCheck) -> VerdictView {
        let verdict = &checked.verdict;
        VerdictView {
            is_clean: checked.is_clean(),
            level: VerdictView::level(verdict.assurance).to_owned(),
            verdict: verdict.to_string(),
            fault: verdict.fault.as_ref().map(LedgerFaultView::of),
            lines: verdict.lines,
            entries: verdict.entries,
            executions: verdict.executions,
            checkpoints: verdict.checkpoints,
            erased: verdict.erased,
            removed: verdict.removed,
            protected: verdict.protected,
            uncovered: verdict.unprotected(),
            rows: checked.rows.clone(),
        }
    }

    pub fn level(assurance: Assurance) -> &'static str {
        match assurance {
            Assurance::ChainOnly => "V0",
            Assurance::Signed => "V1",
            Assurance::Compared => "V2",
        }
    }
}

impl LedgerFaultView {
    fn of(fault: &VerificationFault) -> LedgerFaultView {
        LedgerFaultView {
            line: fault.line,
            execution_id: fault.entry.as_ref().map(|(execution, _)| execution.to_string()),
            seq: fault.entry.as_ref().map(|(_, seq)| *seq),
            message: fault.why.to_string(),
        }
    }
}
