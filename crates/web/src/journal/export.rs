//! Exports the entries of a filter: one JSON object per line, or CSV.

use super::filter::JournalFilterForm;
use crate::page::{PageRequest, PageResult};
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;
use futures::stream;
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::rights::Operation;
use rutter_app::view::{EntryView, PayloadDetail};
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::query::{EntryFilter, EntrySummary, Pagination};
use serde_json::json;
use std::sync::Arc;

/// Entries read at once; the file is streamed, so its length does not matter.
const PIECE: u32 = 500;
const HEADING: &str = "at,execution_id,seq,kind,actor,text,hash\r\n";

pub(crate) async fn write(State(app): State<Arc<App>>, request: PageRequest) -> PageResult {
    app.require(&request.principal, Operation::ExportLedger)?;
    let wrong = |message: String| AppError::new("server.arguments", message);
    let format = match request.query_value("format").unwrap_or("ndjson") {
        "ndjson" => ExportFormat::Lines,
        "csv" => ExportFormat::Table,
        other => return Err(wrong(format!("unknown format {other:?}; expected ndjson or csv")).into()),
    };
    let filter = JournalFilterForm::read(&request).wanted(app.now()).map_err(wrong)?;
    let tenant = request.principal.tenant.clone();
    // The first batch is read before the response starts, so that an invalid filter is an error.
    let first = app.query.entries(&tenant, filter.clone(), Pagination::first(PIECE)).await?;
    let state = JournalExport { app, tenant, filter, format, piece: Some(first), is_first: true };
    let body = Body::from_stream(stream::try_unfold(state, JournalExport::next));
    let headers = [
        (CONTENT_TYPE, format.content_type().to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"journal.{}\"", format.ending())),
    ];
    Ok((headers, body).into_response())
}

#[derive(Clone, Copy)]
enum ExportFormat {
    Lines,
    Table,
}

impl ExportFormat {
    fn content_type(self) -> &'static str {
        match self {
            ExportFormat::Lines => "application/x-ndjson",
            ExportFormat::Table => "text/csv; charset=utf-8",
        }
    }

    fn ending(self) -> &'static str {
        match self {
            ExportFormat::Lines => "ndjson",
            ExportFormat::Table => "csv",
        }
    }

    fn line(self, entry: &EntrySummary) -> String {
        let view = EntryView::of(entry, PayloadDetail::Whole);
        match self {
            ExportFormat::Lines => format!("{}\n", json!(view)),
            ExportFormat::Table => {
                let (seq, actor) = (view.seq.to_string(), entry.record.actor.to_string());
                let cells = [&view.at, &view.execution_id, &seq, &view.kind, &actor, &view.text, &view.hash];
                let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
                format!("{}\r\n", cells.join(","))
            }
        }
    }
}

struct JournalExport {
    app: Arc<App>,
    tenant: TenantId,
    filter: EntryFilter,
    format: ExportFormat,
    piece: Option<port::query::ListPage<EntrySummary>>,
    is_first: bool,
}

impl JournalExport {
    async fn next(mut self) -> Result<Option<(String, JournalExport)>, port::Error> {
        let Some(piece) = self.piece.take() else { return Ok(None) };
        let mut text = String::new();
        if self.is_first && matches!(self.format, ExportFormat::Table) {
            text.push_str(HEADING);
        }
        self.is_first = false;
        piece.items.iter().for_each(|entry| text.push_str(&self.format.line(entry)));
        if piece.next.is_some() {
            let page = Pagination { limit: PIECE, after: piece.next };
            self.piece = Some(self.app.query.entries(&self.tenant, self.filter.clone(), page).await?);
        }
        Ok(Some((text, self)))
    }
}

/// One CSV field. A value that a spreadsheet would take for a formula becomes text.
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
