//! What listeners hear while executions go on. The journal has all of it; only progress is said and not kept.

use rutter_core::execution::Identity;
use rutter_core::execution::view::Status;
use rutter_core::id::PartId;
use rutter_core::journal::event::Record;
use rutter_core::port::tools::Progress;
use std::sync::Arc;

/// Something that has just happened, after it was recorded.
#[derive(Clone, Debug)]
pub struct Happening {
    pub identity: Identity,
    pub live: Live,
}

#[derive(Clone, Debug)]
pub enum Live {
    /// These entries were written; the first has this number.
    Recorded {
        first: u64,
        records: Arc<[Record]>,
        status: Status,
    },
    Progress {
        part: PartId,
        progress: Progress,
    },
}
