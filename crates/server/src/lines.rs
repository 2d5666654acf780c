//! One message per line: reading lines of bounded length.

mod passing;

use passing::Passing;
use serde_json::Value;
use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// A line as it came, without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Text(Vec<u8>),
    /// Longer than allowed; its text was thrown away. If it was a request, this is its id.
    TooLong(Option<Value>),
    End,
}

/// Reads lines; one that was begun is gone on with when reading is interrupted.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    begun: Vec<u8>,
    bytes_max: usize,
    /// Set from the moment on when a line is too long.
    passing: Option<Passing>,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub fn new(reader: R, bytes_max: usize) -> Lines<R> {
        Lines { reader, begun: Vec::new(), bytes_max, passing: None }
    }

    pub async fn next(&mut self) -> io::Result<Line> {
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
            if self.passing.is_none() && self.begun.len() + text.len() > self.bytes_max {
                let mut passing = Passing::default();
                passing.look(&std::mem::take(&mut self.begun));
                self.passing = Some(passing);
            }
            match &mut self.passing {
                Some(passing) => passing.look(text),
                None => self.begun.extend_from_slice(text),
            }
            self.reader.consume(taken);
            if end.is_some() {
                let mut text = std::mem::take(&mut self.begun);
                if text.last() == Some(&b'\r') {
                    text.pop();
                }
                return Ok(match self.passing.take() {
                    Some(passing) => Line::TooLong(passing.id()),
                    None => Line::Text(text),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &str, bytes_max: usize) -> Vec<Line> {
        // A small buffer, so that lines come in pieces.
        let reader = tokio::io::BufReader::with_capacity(3, text.as_bytes());
        let mut lines = Lines::new(reader, bytes_max);
        let mut all = Vec::new();
        loop {
            match lines.next().await.unwrap() {
                Line::End => return all,
                line => all.push(line),
            }
        }
    }

    #[tokio::test]
    async fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        let text = |text: &str| Line::Text(text.into());
        assert_eq!(
            all("1234\n12345\n123456\nx\n", 5).await,
            [text("1234"), text("12345"), Line::TooLong(None), text("x")]
        );
        assert_eq!(all("{\"id\":7}\nx\n", 5).await, [Line::TooLong(Some(7.into())), text("x")]);
        assert_eq!(all("ab\r\n\nlast", 5).await, [text("ab"), text(""), text("last")]);
    }
}
