//! One message per line: reading lines of bounded length, and what little the front needs to know of each.

use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// A line as it came, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(Vec<u8>),
    /// Longer than allowed; its text was thrown away.
    TooLong,
    End,
}

/// Reads lines; one that was begun is gone on with when reading is interrupted.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: R,
    begun: Vec<u8>,
    bytes_max: usize,
    is_too_long: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R, bytes_max: usize) -> Lines<R> {
        Lines { reader, begun: Vec::new(), bytes_max, is_too_long: false }
    }

    pub(super) async fn next(&mut self) -> io::Result<Line> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(match std::mem::take(&mut self.begun) {
                    rest if rest.is_empty() => Line::End,
                    rest => Line::Text(rest),
                });
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            let text = &available[..end.unwrap_or(available.len())];
            if self.begun.len() + text.len() > self.bytes_max {
                self.is_too_long = true;
                self.begun.clear();
            }
            if !self.is_too_long {
                self.begun.extend_from_slice(text);
            }
            self.reader.consume(taken);
            if end.is_some() {
                let text = std::mem::take(&mut self.begun);
                return Ok(match std::mem::take(&mut self.is_too_long) {
                    true => Line::TooLong,
                    false => Line::Text(text),
                });
            }
        }
    }
}

/// What the front looks at; the rest is between client and server.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<'a> {
    pub(super) id: Option<Value>,
    #[serde(borrow)]
    pub(super) method: Option<Cow<'a, str>>,
}

impl Envelope<'_> {
    pub(super) fn read(line: &[u8]) -> Option<Envelope<'_>> {
        serde_json::from_slice(line).ok()
    }
}
