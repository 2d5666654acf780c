//! The tools of a server: every page, within limits, and without invalid ones.

use super::connection::McpConnection;
use super::outcome::{self, cut};
use crate::connector::ServedTool;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, Tool};
use rmcp::service::{PeerRequestOptions, ServiceError};
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure, undeclared_output};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

const TOOLS_MAX: usize = 10_000;
const PAGES_MAX: usize = 100;
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most notes about tools that were left out.
const NOTES_MAX: usize = 100;

/// The fields of a definition that can matter to a plan. A change of any other field is not drift.
const FORWARDED_FIELDS: &[&str] = &["description", "inputSchema", "outputSchema", "annotations", "title"];

#[derive(Default)]
pub(super) struct ToolListing {
    pub(super) tools: Vec<ServedTool>,
    pub(super) left_out: Vec<String>,
    names: BTreeSet<String>,
    bytes: usize,
}

pub(super) async fn all(connection: &McpConnection, patience: Duration) -> Result<ToolListing, ToolFailure> {
    match tokio::time::timeout(patience, pages(connection)).await {
        Ok(listing) => {
            connection.has_listed.store(true, Ordering::Relaxed);
            listing
        }
        Err(_) => Err(ToolFailure::new(FailureCategory::Timeout, "it did not list its tools in time")),
    }
}

async fn pages(connection: &McpConnection) -> Result<ToolListing, ToolFailure> {
    let mut listing = ToolListing::default();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let page = page(connection, cursor.take()).await?;
        let Some(tools) = page.get("tools").and_then(Value::as_array) else {
            return Err(ToolFailure::new(FailureCategory::Protocol, "its list of tools has no `tools`"));
        };
        for tool in tools {
            if !listing.take(tool) {
                return Ok(listing);
            }
        }
        match page.get("nextCursor").and_then(Value::as_str) {
            Some(next) if !next.is_empty() => cursor = Some(next.to_owned()),
            _ => return Ok(listing),
        }
    }
    listing.leave_out(format!("everything after page {PAGES_MAX}"));
    Ok(listing)
}

async fn page(connection: &McpConnection, cursor: Option<String>) -> Result<Value, ToolFailure> {
    let mut request = ListToolsRequest::default();
    if cursor.is_some() {
        request.params = Some(PaginatedRequestParams::default().with_cursor(cursor));
    }
    let request = ClientRequest::ListToolsRequest(request);
    let sent = connection.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    let answer = match sent {
        Ok(handle) => {
            let id = handle.id.clone();
            match handle.rx.await.unwrap_or(Err(ServiceError::TransportClosed)) {
                Ok(result) => Ok(result),
                Err(error) => Err(outcome::of_loss(connection, &id, error).await),
            }
        }
        Err(_) => return Err(connection.end_reason().await),
    };
    match answer {
        // Whatever type the list was parsed as, only its JSON counts here.
        Ok(result) => serde_json::to_value(result).map_err(|error| {
            ToolFailure::new(FailureCategory::Protocol, format!("its list of tools cannot be read: {error}"))
        }),
        Err(CallOutcome::NotDone(failure) | CallOutcome::Maybe(failure)) => Err(failure),
        Err(CallOutcome::Done { .. }) => {
            Err(ToolFailure::new(FailureCategory::Internal, "a failure was reported as a result"))
        }
    }
}

impl ToolListing {
    /// Takes a tool, or notes why not; `false` when a limit is reached.
    fn take(&mut self, tool: &Value) -> bool {
        if self.tools.len() == TOOLS_MAX {
            self.leave_out(format!("everything after {TOOLS_MAX} tools"));
            return false;
        }
        let called = tool.get("name").and_then(Value::as_str).map_or("?".to_owned(), cut_name);
        let read: Result<Tool, _> = serde_json::from_value(tool.clone());
        let tool = match read.map(serde_json::to_value) {
            Ok(Ok(Value::Object(tool))) => tool,
            Ok(_) => return true,
            Err(error) => {
                self.leave_out(format!("tool `{called}`: its definition cannot be read: {}", cut(&error.to_string())));
                return true;
            }
        };
        let Some(Value::String(name)) = tool.get("name").cloned() else { return true };
        if name.is_empty() || name.len() > 128 || name.chars().any(|c| c.is_control() || c.is_whitespace()) {
            self.leave_out(format!("tool `{called}`: its name is empty, too long or has spaces"));
            return true;
        }
        if self.names.contains(&name) {
            self.leave_out(format!("tool `{called}`: another tool has that name"));
            return true;
        }
        let definition: Map<String, Value> =
            tool.into_iter().filter(|(key, _)| FORWARDED_FIELDS.contains(&key.as_str())).collect();
        self.bytes += name.len() + Value::Object(definition.clone()).to_string().len();
        if self.bytes > BYTES_MAX {
            self.leave_out(format!(
                "everything from tool `{called}` on: together they have more than {BYTES_MAX} bytes"
            ));
            return false;
        }
        self.names.insert(name.clone());
        self.tools.push(ServedTool { name, definition, result: Some(undeclared_output()) });
        true
    }

    fn leave_out(&mut self, note: String) {
        if self.left_out.len() < NOTES_MAX {
            self.left_out.push(note);
        }
    }
}

fn cut_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(128).collect()
}
