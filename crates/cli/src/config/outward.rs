//! What may be sent to others: events to webhooks.

use serde::Deserialize;

/// `[webhooks]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WebhooksConfig {
    /// Hosts, addresses and networks inside that events may be sent to, also without TLS.
    pub(crate) allow: Vec<String>,
}
