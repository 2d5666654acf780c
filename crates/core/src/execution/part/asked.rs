//! What people were asked about the call of a part, and why it was not allowed.

use crate::actor::Actor;
use crate::hash::Hash;
use crate::id::ToolName;
use crate::journal::event::ApprovalBasis;

/// A call that a person was asked to approve.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedCall {
    pub tool: ToolName,
    pub basis: ApprovalBasis,
}

/// Who approved a call, and by which entry of the execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approver {
    pub actor: Actor,
    pub entry: u64,
}

/// A call that was not made because a person or the policy did not allow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartRefusal {
    pub kind: RefusalKind,
    pub digest: Option<Hash>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// A person said no, now or earlier.
    Denied,
    /// Nobody answered in time.
    Expired,
    /// The operator's policy forbids it.
    Forbidden,
    /// It could not be evaluated, and a rule of the policy may have forbidden it or asked for an approval.
    Unjudged,
}
