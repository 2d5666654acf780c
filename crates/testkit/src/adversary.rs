//! An agent that tries to get calls made which a person or the policy denied: its random choices, and their judge.
//!
//! Nothing here knows the product. [`plans`] writes plans around guarded calls and hides such calls in new plans;
//! [`judge`] compares the effects that tools counted with what people said, under the rules of that time. The driver with
//! real connections is in the tests of the program.

pub mod judge;
pub mod plans;

/// Charges a card: the policy wants a person's approval, and forbids more than [`CHARGE_MAX`].
pub const CHARGE: &str = "shop.charge";
/// Sends an invoice: only plans ask for approval of it.
pub const INVOICE: &str = "shop.invoice";
/// Deletes something: the policy forbids it.
pub const WIPE: &str = "shop.wipe";
/// Reads what is confidential: the policy wants a person's approval.
pub const PEEK: &str = "shop.peek";
/// Reads what is secret: the policy forbids it.
pub const PRY: &str = "shop.pry";
/// Publishes, which can be repeated: the policy wants a person's approval.
pub const SYNC: &str = "shop.sync";
/// Sends a mail: the policy limits how many.
pub const MAIL: &str = "shop.mail";
/// Writes a note, which nobody minds.
pub const NOTE: &str = "shop.note";
/// The same, and answers later than its callers wait.
pub const SLOW: &str = "shop.slow";
/// Fails without an effect.
pub const BROKEN: &str = "shop.broken";
/// Reads.
pub const LOOK: &str = "shop.look";

/// The tools that people or the policy decide about.
pub const GUARDED: [&str; 6] = [CHARGE, INVOICE, WIPE, PEEK, PRY, SYNC];

/// What an agent writes in the place of an idempotency key; a call with it is another call.
pub const MADE_UP_KEY: &str = "mine";

/// The largest amount that the policy allows at all.
pub const CHARGE_MAX: f64 = 1000.0;
/// The mails that the policy allows in a day.
pub const MAILS_MAX: usize = 20;
/// How often a call that was denied may be put to a person again.
pub const ASK_AGAIN_MAX: usize = 3;

/// The rules of the operator, which change only while the server is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSet {
    /// As each tool says above.
    Usual,
    /// Only an auditor, who never comes, approves charges, invoices and publishing; nobody reads what is confidential.
    Stricter,
    /// Nobody has to be asked about charges, publishing and what is confidential.
    Looser,
}
