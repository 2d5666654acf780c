//! The state of every server and its tools, for troubleshooting.

use super::offered_tool::OfferedTools;
use super::server::RegisteredServer;
use super::text::look;
use super::{ToolRegistry, server_of};
use crate::connector::ConnectorState;
use rutter_core::id::ToolName;
use rutter_core::redact::Redactor;
use rutter_core::time::Timestamp;
use rutter_core::tool::report::{ConnectorReport, ListFailure, ServerReport, ToolReport};
use std::collections::BTreeMap;

impl ToolRegistry {
    /// Every server, in the order of their names. No server is contacted.
    pub fn report(&self) -> Vec<ServerReport> {
        let now = (self.clock)();
        let redactor = self.secrets.redactor();
        let known: Vec<_> = self.servers.values().map(|server| server.last_known().unwrap_or_default()).collect();
        let names = known.iter().flat_map(|offers| offers.by_name.keys());
        let alike = alike(names);
        let reports = self.servers.values().zip(&known);
        reports.map(|(server, offers)| report(server, offers, &alike, &redactor, now)).collect()
    }
}

fn report(
    server: &RegisteredServer,
    offers: &OfferedTools,
    alike: &BTreeMap<&ToolName, &ToolName>,
    redactor: &Redactor,
    now: Timestamp,
) -> ServerReport {
    let stats = server.stats();
    let tools = offers.by_name.values().map(|offer| ToolReport {
        name: offer.tool.name.clone(),
        title: offer.title.clone(),
        safety: offer.tool.safety,
        safety_source: offer.tool.safety_source,
        definition: offer.tool.definition,
        stats: stats.get(&offer.tool.name).map(|stats| stats.summary()).unwrap_or_default(),
    });
    let tools = tools.collect();
    let connector = match server.connector.state() {
        ConnectorState::Idle => ConnectorReport::Idle,
        ConnectorState::Starting => ConnectorReport::Starting,
        ConnectorState::Ready => ConnectorReport::Ready,
        ConnectorState::Down { reason, stderr } => ConnectorReport::Down {
            reason: redactor.text(&reason).into_owned(),
            last_words: stderr.iter().map(|line| redactor.text(line).into_owned()).collect(),
        },
    };
    ServerReport {
        server: server.name.clone(),
        trusted: server.common.trust,
        connector,
        breaker: server.breaker.report(now),
        failure: server.failure().map(|(at, failure)| ListFailure { at, failure: redactor.failure(failure) }),
        tools,
        hidden: offers.hidden,
        left_out: offers.left_out.clone(),
        doubts: doubts(server, offers, alike),
    }
}

fn doubts(server: &RegisteredServer, offers: &OfferedTools, alike: &BTreeMap<&ToolName, &ToolName>) -> Vec<String> {
    let mut doubts = Vec::new();
    for (name, offer) in &offers.by_name {
        if offer.is_suspicious {
            doubts.push(format!("the definition of {name} has invisible characters"));
        }
        if let Some(other) = alike.get(name) {
            doubts.push(format!("{name} is easily confused with {other}"));
        }
    }
    if server.last_known().is_none() {
        return doubts;
    }
    for (name, settings) in &server.common.tools {
        let is_left_out = offers.left_out.iter().any(|left_out| left_out.name == *name);
        let full = format!("{}.{name}", server.name);
        if !settings.hidden && !is_left_out && !offers.by_name.contains_key(full.as_str()) {
            doubts.push(format!("there are settings for {full}, but the server has no such tool"));
        }
    }
    doubts
}

/// Each name that looks like another one, with that other one.
fn alike<'a>(names: impl Iterator<Item = &'a ToolName>) -> BTreeMap<&'a ToolName, &'a ToolName> {
    let mut by_look: BTreeMap<String, Vec<&ToolName>> = BTreeMap::new();
    for name in names {
        by_look.entry(look(name.as_str())).or_default().push(name);
    }
    let mut alike = BTreeMap::new();
    for group in by_look.into_values().filter(|group| group.len() > 1) {
        for name in &group {
            // One of another server is the more dangerous one.
            let strangers = group.iter().filter(|other| server_of(other) != server_of(name));
            let other = strangers.chain(group.iter()).find(|other| *other != name);
            alike.extend(other.map(|other| (*name, *other)));
        }
    }
    alike
}
