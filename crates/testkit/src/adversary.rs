//! An agent that tries to get calls made which a person or the policy denied: its random choices, and their judge.
//!
//! Nothing here knows the product. [`plans`] writes plans around guarded calls and hides such calls in new plans;
//! [`judge`] compares the effects that tools counted with what people said. The driver with real connections is in the
//! tests of the program.

pub mod judge;
pub mod plans;

/// Charges a card: the policy wants a person's approval, and forbids more than [`CHARGE_MAX`].
pub const CHARGE: &str = "shop.charge";
/// Sends an invoice: only plans ask for approval of it.
pub const INVOICE: &str = "shop.invoice";
/// Deletes something: the policy forbids it.
pub const WIPE: &str = "shop.wipe";
/// Sends a mail: the policy limits how many.
pub const MAIL: &str = "shop.mail";
/// Writes a note, which nobody minds.
pub const NOTE: &str = "shop.note";
/// Fails without an effect.
pub const BROKEN: &str = "shop.broken";
/// Reads.
pub const LOOK: &str = "shop.look";

/// The largest amount that the policy allows at all.
pub const CHARGE_MAX: f64 = 1000.0;
/// The mails that the policy allows in a day.
pub const MAILS_MAX: usize = 20;
