//! A receipt, as `rutter journal verify --receipt` reads it.

use rutter_core::journal::verify::EntryReceipt;
use schemars::JsonSchema;
use serde::Serialize;

/// Proves later that an entry existed. The names are those of the file format, so that the object can be saved as it is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Receipt")]
pub struct ReceiptView {
    pub tenant: String,
    pub execution: String,
    pub seq: u64,
    pub hash: String,
}

impl ReceiptView {
    pub fn of(receipt: &EntryReceipt) -> ReceiptView {
        ReceiptView {
            tenant: receipt.tenant.to_string(),
            execution: receipt.execution.to_string(),
            seq: receipt.seq,
            hash: receipt.hash.to_string(),
        }
    }
}
