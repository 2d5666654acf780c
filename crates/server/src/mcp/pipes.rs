//! JSON-RPC over a pair of pipes, one message per line. Whatever comes gets an answer if one can be given: what cannot
//! be read, what is too long, and what is no message of the protocol.

use crate::limits::MESSAGE_BYTES_MAX;
use crate::lines::{Line, Lines};
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ServerJsonRpcMessage};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;

#[derive(Debug)]
pub struct Pipes<R, W> {
    lines: Lines<R>,
    writer: Arc<Mutex<Option<W>>>,
}

impl<R, W> Pipes<R, W>
where
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Unpin,
{
    pub fn new(reader: R, writer: W) -> Pipes<R, W> {
        Pipes { lines: Lines::new(reader, MESSAGE_BYTES_MAX), writer: Arc::new(Mutex::new(Some(writer))) }
    }
}

impl<R, W> Transport<RoleServer> for Pipes<R, W>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writer = Arc::clone(&self.writer);
        async move { write(&writer, serde_json::to_vec(&message)?).await }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let wrong = match self.lines.next().await {
                Ok(Line::Text(line)) if line.iter().all(u8::is_ascii_whitespace) => continue,
                Ok(Line::Text(line)) => match read(&line) {
                    Ok(Some(message)) => return Some(message),
                    Ok(None) => continue,
                    Err(wrong) => wrong,
                },
                Ok(Line::TooLong) => {
                    let message = format!("a message may have {MESSAGE_BYTES_MAX} bytes, this one has more");
                    Wrong { id: Value::Null, code: ErrorCode::INVALID_REQUEST, message }
                }
                Ok(Line::End) | Err(_) => return None,
            };
            let Ok(answer) = serde_json::to_vec(&wrong.answer()) else { continue };
            if write(&self.writer, answer).await.is_err() {
                return None;
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        match self.writer.lock().await.take() {
            Some(mut writer) => writer.shutdown().await,
            None => Ok(()),
        }
    }
}

async fn write<W: AsyncWrite + Unpin>(writer: &Mutex<Option<W>>, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    match writer.lock().await.as_mut() {
        Some(writer) => {
            writer.write_all(&line).await?;
            writer.flush().await
        }
        None => Err(io::Error::new(io::ErrorKind::NotConnected, "the pipe is closed")),
    }
}

/// Why a line is no message, and to which request that is the answer, if it has a name.
#[derive(Debug)]
struct Wrong {
    id: Value,
    code: ErrorCode,
    message: String,
}

impl Wrong {
    fn answer(&self) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.id, "error": { "code": self.code.0, "message": self.message } })
    }
}

/// `None` for what wants no answer and means nothing.
fn read(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Wrong> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let nobody = |code, message: String| Wrong { id: Value::Null, code, message };
    let value: Value = serde_json::from_slice(line)
        .map_err(|error| nobody(ErrorCode::PARSE_ERROR, format!("this line is not JSON: {error}")))?;
    let invalid = |message: &str| nobody(ErrorCode::INVALID_REQUEST, message.to_owned());
    let Value::Object(fields) = &value else {
        return Err(invalid("a message is one JSON object; batches are not part of the protocol"));
    };
    let id = match fields.get("id") {
        None => None,
        Some(id) if id.is_string() || id.is_i64() => Some(id.clone()),
        // The answer to something that could not be read has no id.
        Some(Value::Null) if fields.contains_key("error") => return Ok(None),
        Some(_) => return Err(invalid("id must be a text or an integer")),
    };
    let wrong = |code: ErrorCode, message: &str| {
        let id = id.clone().unwrap_or_default();
        Wrong { id, code, message: message.to_owned() }
    };
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(wrong(ErrorCode::INVALID_REQUEST, "jsonrpc must be \"2.0\""));
    }
    match fields.get("method") {
        Some(Value::String(method)) if !method.is_empty() => {}
        Some(_) => return Err(wrong(ErrorCode::INVALID_REQUEST, "method must be the name of a method")),
        None if fields.contains_key("result") || fields.contains_key("error") => {}
        None => {
            return Err(wrong(ErrorCode::INVALID_REQUEST, "a message has a method, a result or an error"));
        }
    }
    if fields.get("params").is_some_and(|params| !params.is_object() && !params.is_null()) {
        return Err(wrong(ErrorCode::INVALID_PARAMS, "params must be an object"));
    }
    let is_request = id.is_some() && fields.contains_key("method");
    match serde_json::from_value(value) {
        Ok(message) => Ok(Some(message)),
        Err(error) if is_request => Err(wrong(ErrorCode::INVALID_PARAMS, &error.to_string())),
        // A notification or an answer that means nothing to us.
        Err(error) => {
            tracing::debug!("a message that wants no answer could not be read: {error}");
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_answered_with_the_id_it_has() {
        let request = |rest: &str| format!("{{\"jsonrpc\":\"2.0\",{rest}}}");
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        for (line, id, code) in [
            ("{".to_owned(), json!(null), -32700),
            ("\u{0}".to_owned(), json!(null), -32700),
            (deep, json!(null), -32700),
            ("[]".to_owned(), json!(null), -32600),
            ("7".to_owned(), json!(null), -32600),
            ("{\"id\":1,\"method\":\"ping\"}".to_owned(), json!(1), -32600),
            (request("\"id\":1.5,\"method\":\"ping\""), json!(null), -32600),
            (request("\"id\":null,\"method\":\"ping\""), json!(null), -32600),
            (request("\"id\":{},\"method\":\"ping\""), json!(null), -32600),
            (request("\"id\":1,\"method\":7"), json!(1), -32600),
            (request("\"id\":\"a\""), json!("a"), -32600),
            (request("\"id\":2,\"method\":\"ping\",\"params\":[]"), json!(2), -32602),
        ] {
            let wrong = read(line.as_bytes()).unwrap_err();
            assert_eq!((wrong.id, wrong.code.0), (id, code), "{line}");
        }
        assert!(read(request("\"id\":1,\"method\":\"ping\"").as_bytes()).unwrap().is_some());
        assert!(read(request("\"method\":\"notifications/initialized\"").as_bytes()).unwrap().is_some());
    }
}
