//! Reads newline-delimited messages of bounded length.

mod id_scanner;

use id_scanner::MessageIdScanner;
use serde_json::Value;
use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// A line without its line break.
#[derive(Debug, PartialEq, Eq)]
pub enum InputLine {
    Text(Vec<u8>),
    /// Longer than allowed; the text was dropped. If it was a request, this is its id.
    TooLong(Option<Value>),
    End,
}

/// Reads lines. Cancel safe: an interrupted line is continued by the next call.
#[derive(Debug)]
pub struct LineReader<R> {
    reader: R,
    begun: Vec<u8>,
    bytes_max: usize,
    /// Set as soon as a line is too long.
    id_scanner: Option<MessageIdScanner>,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    pub fn new(reader: R, bytes_max: usize) -> LineReader<R> {
        LineReader { reader, begun: Vec::new(), bytes_max, id_scanner: None }
    }

    pub async fn next(&mut self) -> io::Result<InputLine> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(match std::mem::take(&mut self.begun) {
                    rest if rest.is_empty() => InputLine::End,
                    rest => InputLine::Text(rest),
                });
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            let text = &available[..end.unwrap_or(available.len())];
            if self.id_scanner.is_none() && self.begun.len() + text.len() > self.bytes_max {
                let mut passing = MessageIdScanner::default();
                passing.scan(&std::mem::take(&mut self.begun));
                self.id_scanner = Some(passing);
            }
            match &mut self.id_scanner {
                Some(passing) => passing.scan(text),
                None => self.begun.extend_from_slice(text),
            }
            self.reader.consume(taken);
            if end.is_some() {
                let mut text = std::mem::take(&mut self.begun);
                if text.last() == Some(&b'\r') {
                    text.pop();
                }
                return Ok(match self.id_scanner.take() {
                    Some(passing) => InputLine::TooLong(passing.id()),
                    None => InputLine::Text(text),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &str, bytes_max: usize) -> Vec<InputLine> {
        // A small buffer, so that lines arrive in pieces.
        let reader = tokio::io::BufReader::with_capacity(3, text.as_bytes());
        let mut lines = LineReader::new(reader, bytes_max);
        let mut all = Vec::new();
        loop {
            match lines.next().await.unwrap() {
                InputLine::End => return all,
                line => all.push(line),
            }
        }
    }

    #[tokio::test]
    async fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        let text = |text: &str| InputLine::Text(text.into());
        assert_eq!(
            all("1234\n12345\n123456\nx\n", 5).await,
            [text("1234"), text("12345"), InputLine::TooLong(None), text("x")]
        );
        assert_eq!(all("{\"id\":7}\nx\n", 5).await, [InputLine::TooLong(Some(7.into())), text("x")]);
        assert_eq!(all("ab\r\n\nlast", 5).await, [text("ab"), text(""), text("last")]);
    }
}
