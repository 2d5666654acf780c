//! Updates for subscribers while executions run. All but progress is in the journal, too.

use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::id::PartId;
use rutter_core::journal::event::EventRecord;
use rutter_core::port::tools::ToolProgress;
use std::sync::Arc;

/// Something that has just happened; entries are already recorded.
#[derive(Clone, Debug)]
pub struct ExecutionUpdate {
    pub identity: ExecutionIdentity,
    pub content: UpdateContent,
}

#[derive(Clone, Debug)]
pub enum UpdateContent {
    /// These entries were written; the first has this number.
    Recorded {
        first: u64,
        records: Arc<[EventRecord]>,
        status: ExecutionStatus,
    },
    Progress {
        part: PartId,
        progress: ToolProgress,
    },
}
