//! Outgoing data: events to webhooks, traces to a collector.

use crate::failure::CommandRefusal;
use rutter_app::app::TraceCollector;
use rutter_core::port::outbox::HttpSender;
use rutter_observe::trace;
use rutter_tools::guard::SystemResolver;
use rutter_tools::http_sender::GuardedHttpSender;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// `[webhooks]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WebhooksConfig {
    /// Private hosts, addresses and networks that events may be sent to, also without TLS.
    pub(crate) allow: Vec<String>,
}

/// `[telemetry]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TelemetryConfig {
    /// A collector that takes OTLP over HTTP as JSON, such as `http://127.0.0.1:4318`.
    pub(crate) otlp_endpoint: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
    /// Also sends the parameters and results of calls.
    pub(crate) include_arguments: bool,
    pub(crate) service: Option<String>,
}

/// The collector if no file names one; a standard variable of OpenTelemetry.
pub(crate) const OTLP_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

impl TelemetryConfig {
    /// The trace options and the sender, which may reach any host: the operator configured it.
    pub(crate) fn collector(&self, mcp_servers: BTreeSet<String>) -> Result<Option<TraceCollector>, CommandRefusal> {
        let Some(endpoint) = &self.otlp_endpoint else { return Ok(None) };
        let wrong = |why: String| {
            CommandRefusal::new("config.invalid", format!("telemetry.otlp_endpoint: {why}"))
                .with_hint("set a collector such as http://127.0.0.1:4318")
        };
        let host = endpoint.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or(rest));
        let host = host.ok_or_else(|| wrong(format!("{endpoint:?} is not an address")))?;
        let host = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, _)) => address,
            None => host.split(':').next().unwrap_or(host),
        };
        let carrier = GuardedHttpSender::new(&[host.to_owned()], Arc::new(SystemResolver));
        let carrier = carrier.map_err(|why| wrong(why.to_string()))?;
        carrier.check(endpoint).map_err(wrong)?;
        let options = trace::TraceOptions {
            endpoint: endpoint.clone(),
            headers: self.headers.clone().into_iter().collect(),
            include_arguments: self.include_arguments,
            mcp_servers,
            service: self.service.clone().unwrap_or_else(|| "rutter".to_owned()),
            version: env!("CARGO_PKG_VERSION"),
        };
        Ok(Some(TraceCollector { options, http_sender: Arc::new(carrier) }))
    }
}
