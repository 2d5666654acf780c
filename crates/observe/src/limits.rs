//! Every limit of this crate, by name.

/// Webhooks of one tenant.
pub const WEBHOOKS_MAX: usize = 100;
/// Patterns of one webhook.
pub const WEBHOOK_PATTERNS_MAX: usize = 50;
/// Names in one list of a webhook or a rule: plans, webhooks, commands.
pub const WEBHOOK_NAMES_MAX: usize = 100;
/// Rules that operators added or changed.
pub const RULES_MAX: usize = 100;
/// Silences that have not expired.
pub const SILENCES_MAX: usize = 100;
/// The newest entries of the ledger held in memory for followers.
pub const LIVE_ENTRIES_MAX: usize = 8_192;
