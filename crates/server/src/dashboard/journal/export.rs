//! The entries of a filter as a file: one JSON object per line, or a table.

use super::filter::Filter;
use super::told::fields;
use crate::dashboard::page::{Answer, Visitor};
use crate::desk::Desk;
use crate::fault::Fault;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;
use futures::stream;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::query::{EntryFilter, EntrySummary, Page};
use rutter_core::time::calendar::utc;
use serde_json::json;
use std::sync::Arc;

/// Of one piece; the file is written piece by piece, so its length does not matter.
const PIECE: u32 = 500;
const HEADING: &str = "at,execution,seq,kind,actor,words,hash\r\n";

pub(in crate::dashboard) async fn write(State(desk): State<Arc<Desk>>, visitor: Visitor) -> Answer {
    let wrong = |message: String| Fault::new("server.arguments", message);
    let format = match visitor.asked("format").unwrap_or("ndjson") {
        "ndjson" => Format::Lines,
        "csv" => Format::Table,
        other => return Err(wrong(format!("{other:?} is no format; there are ndjson and csv")).into()),
    };
    let filter = Filter::read(&visitor).wanted(desk.engine.now()).map_err(wrong)?;
    let tenant = visitor.guest.tenant.clone();
    // The first piece is fetched before anything is said, so that a filter nobody understands is an error.
    let first = desk.query.entries(&tenant, filter.clone(), Page::first(PIECE)).await?;
    let state = Writing { desk, tenant, filter, format, piece: Some(first), is_first: true };
    let body = Body::from_stream(stream::try_unfold(state, Writing::next));
    let headers = [
        (CONTENT_TYPE, format.content_type().to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"journal.{}\"", format.ending())),
    ];
    Ok((headers, body).into_response())
}

#[derive(Clone, Copy)]
enum Format {
    Lines,
    Table,
}

impl Format {
    fn content_type(self) -> &'static str {
        match self {
            Format::Lines => "application/x-ndjson",
            Format::Table => "text/csv; charset=utf-8",
        }
    }

    fn ending(self) -> &'static str {
        match self {
            Format::Lines => "ndjson",
            Format::Table => "csv",
        }
    }

    fn line(self, entry: &EntrySummary) -> String {
        let (record, kind) = (&entry.record, entry.record.event.kind());
        let (at, actor) = (utc(record.at), record.actor.to_string());
        match self {
            Format::Lines => {
                let line = json!({ "at": at, "execution_id": entry.execution, "seq": entry.seq, "kind": kind,
                    "actor": actor, "hash": entry.hash.to_string(), "event": fields(&record.event) });
                format!("{line}\n")
            }
            Format::Table => {
                let words = record.event.words().unwrap_or_default();
                let seq = entry.seq.to_string();
                let hash = entry.hash.to_string();
                let cells = [at.as_str(), entry.execution.as_str(), &seq, kind, &actor, &words, &hash];
                let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
                format!("{}\r\n", cells.join(","))
            }
        }
    }
}

struct Writing {
    desk: Arc<Desk>,
    tenant: TenantId,
    filter: EntryFilter,
    format: Format,
    piece: Option<port::query::Listing<EntrySummary>>,
    is_first: bool,
}

impl Writing {
    async fn next(mut self) -> Result<Option<(String, Writing)>, port::Error> {
        let Some(piece) = self.piece.take() else { return Ok(None) };
        let mut text = String::new();
        if self.is_first && matches!(self.format, Format::Table) {
            text.push_str(HEADING);
        }
        self.is_first = false;
        piece.items.iter().for_each(|entry| text.push_str(&self.format.line(entry)));
        if piece.next.is_some() {
            let page = Page { limit: PIECE, after: piece.next };
            self.piece = Some(self.desk.query.entries(&self.tenant, self.filter.clone(), page).await?);
        }
        Ok(Some((text, self)))
    }
}

/// One cell. What a table program would take for a formula is made text.
fn cell(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    match text.contains([',', '"', '\n', '\r']) || !guard.is_empty() {
        true => format!("\"{guard}{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_text_whatever_they_say() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("=1+1", "\"'=1+1\""),
            ("@sum", "\"'@sum\""),
            ("two\nlines", "\"two\nlines\""),
        ] {
            assert_eq!(cell(text), expected);
        }
    }
}
