//! What is sent to others: events to webhooks, traces to a collector.

use crate::failure::Refusal;
use rutter_core::port::outbox::Post;
use rutter_server::desk::Collector;
use rutter_server::trace;
use rutter_tools::guard::SystemResolver;
use rutter_tools::post::Carrier;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// `[webhooks]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WebhooksConfig {
    /// Hosts, addresses and networks inside that events may be sent to, also without TLS.
    pub(crate) allow: Vec<String>,
}

/// `[telemetry]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TelemetryConfig {
    /// A collector that takes OTLP over HTTP as JSON, such as `http://127.0.0.1:4318`.
    pub(crate) otlp_endpoint: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
    /// Sends what tools were called with and what they answered, too.
    pub(crate) include_arguments: bool,
    pub(crate) service: Option<String>,
}

/// Where traces go if no file says it, as every program with traces has it.
pub(crate) const OTLP_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

impl TelemetryConfig {
    /// What to send where, and who takes it there: the operator's own collector may be anywhere.
    pub(crate) fn collector(&self, mcp_servers: BTreeSet<String>) -> Result<Option<Collector>, Refusal> {
        let Some(endpoint) = &self.otlp_endpoint else { return Ok(None) };
        let wrong = |why: String| {
            Refusal::new("config.invalid", format!("telemetry.otlp_endpoint: {why}"))
                .with_hint("name a collector such as http://127.0.0.1:4318")
        };
        let host =
            endpoint.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or(rest));
        let host = host.ok_or_else(|| wrong(format!("{endpoint:?} is not an address")))?;
        let host = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, _)) => address,
            None => host.split(':').next().unwrap_or(host),
        };
        let carrier = Carrier::new(&[host.to_owned()], Arc::new(SystemResolver));
        let carrier = carrier.map_err(|why| wrong(why.to_string()))?;
        carrier.check(endpoint).map_err(wrong)?;
        let options = trace::Options {
            endpoint: endpoint.clone(),
            headers: self.headers.clone().into_iter().collect(),
            include_arguments: self.include_arguments,
            mcp_servers,
            service: self.service.clone().unwrap_or_else(|| "rutter".to_owned()),
            version: env!("CARGO_PKG_VERSION"),
        };
        Ok(Some(Collector { options, post: Arc::new(carrier) }))
    }
}
