//! JSON-RPC over a pair of pipes, one message per line. Unreadable, overlong and invalid messages get an error response
//! where possible.

use crate::lines::{InputLine, LineReader};
use crate::message::{InvalidMessage, REPEATED, read};
use futures::future::BoxFuture;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, GetMeta, ProtocolVersion, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use rutter_app::limits::MESSAGE_BYTES_MAX;
use serde_json::json;
use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex as Lock, PoisonError};
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;

pub struct ServerPipeTransport<R, W> {
    lines: LineReader<R>,
    writer: Arc<Mutex<Option<W>>>,
    /// The client has sent its first valid request.
    has_begun: bool,
    /// Open requests. The library would answer only one of two with the same id.
    open: Arc<Lock<HashSet<RequestId>>>,
    /// An error response being written. Stored here because `receive` may be cancelled.
    refusing: Option<BoxFuture<'static, io::Result<()>>>,
}

impl<R, W> ServerPipeTransport<R, W>
where
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Unpin,
{
    pub fn new(reader: R, writer: W) -> ServerPipeTransport<R, W> {
        let (lines, writer) = (LineReader::new(reader, MESSAGE_BYTES_MAX), Arc::new(Mutex::new(Some(writer))));
        ServerPipeTransport { lines, writer, has_begun: false, open: Arc::default(), refusing: None }
    }
}

impl<R, W> Transport<RoleServer> for ServerPipeTransport<R, W>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let id = match &message {
            ServerJsonRpcMessage::Response(response) => Some(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = id {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        }
        let writer = Arc::clone(&self.writer);
        async move { write(&writer, serde_json::to_vec(&message)?).await }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(refusing) = &mut self.refusing {
                let refused = refusing.await;
                self.refusing = None;
                if refused.is_err() {
                    return None;
                }
            }
            let wrong = match self.lines.next().await {
                Ok(InputLine::Text(line)) if line.iter().all(u8::is_ascii_whitespace) => continue,
                Ok(InputLine::Text(line)) => match read(&line) {
                    Ok(Some(message)) => {
                        self.has_begun |= begins(&message);
                        // The library would close a connection that begins with a notification.
                        if !self.has_begun && !matches!(message, ClientJsonRpcMessage::Request(_)) {
                            continue;
                        }
                        match self.repeated(&message) {
                            None => return Some(message),
                            Some(wrong) => wrong,
                        }
                    }
                    Ok(None) => continue,
                    Err(wrong) => wrong,
                },
                Ok(InputLine::TooLong(id)) => {
                    let message = format!("expected a message of at most {MESSAGE_BYTES_MAX} bytes");
                    InvalidMessage::of(id.unwrap_or_default(), ErrorCode::INVALID_REQUEST, message)
                }
                Ok(InputLine::End) | Err(_) => return None,
            };
            let Ok(answer) = serde_json::to_vec(&wrong.answer()) else { continue };
            let writer = Arc::clone(&self.writer);
            self.refusing = Some(Box::pin(async move { write(&writer, answer).await }));
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        match self.writer.lock().await.take() {
            Some(mut writer) => writer.shutdown().await,
            None => Ok(()),
        }
    }
}

impl<R, W> ServerPipeTransport<R, W> {
    /// Tracks open requests, and refuses a second request with the id of an open one.
    fn repeated(&self, message: &ClientJsonRpcMessage) -> Option<InvalidMessage> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match message {
            ClientJsonRpcMessage::Request(request) if !open.insert(request.id.clone()) => {
                Some(InvalidMessage::of(json!(request.id), ErrorCode::INVALID_REQUEST, REPEATED))
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // A cancelled request gets no response.
                    open.remove(id);
                }
                None
            }
            _ => None,
        }
    }
}

impl<R, W> std::fmt::Debug for ServerPipeTransport<R, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerPipeTransport").field("has_begun", &self.has_begun).finish_non_exhaustive()
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

/// Whether a client may begin with this message: `initialize`, or a request that names its protocol version.
fn begins(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => {
            let meta = request.get_meta();
            let is_known = |version| ProtocolVersion::KNOWN_VERSIONS.contains(&version);
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && meta.protocol_version().is_some_and(is_known)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use tokio::io::{AsyncReadExt, BufReader};

    /// What the transport makes of the arguments of a tool call: the arguments that the tool gets, or the answer.
    async fn received(arguments: &str) -> Result<Value, Value> {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"tester","version":"1"}}"#;
        let params = format!("{{\"name\":\"execute_plan\",{meta},\"arguments\":{arguments}}}");
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{params}}}\n");
        let (mut near, far) = tokio::io::duplex(1 << 16);
        let mut pipes = ServerPipeTransport::new(BufReader::new(line.as_bytes()), far);
        let message = pipes.receive().await;
        drop(pipes);
        let mut answer = Vec::new();
        near.read_to_end(&mut answer).await.unwrap();
        match message {
            Some(message) => Ok(serde_json::to_value(message).unwrap()["params"]["arguments"].clone()),
            None => Err(serde_json::from_slice(&answer).unwrap()),
        }
    }

    /// A message with a plan, or with an escape anywhere, is judged by what the client sent, like any other.
    #[tokio::test]
    async fn what_two_readers_could_read_differently_is_refused_next_to_a_plan_and_next_to_an_escape() {
        for other in [r#""plan":{"name":"a"}"#, r#""pl\u0061n":{"name":"a"}"#, r#""note":"caf\u00e9""#, r#""note":1"#] {
            for (rest, at) in [
                (r#""inputs":{"x":1,"x":2}"#, "/params/arguments/inputs/x"),
                (r#""inputs":{"x":9007199254740993}"#, "/params/arguments/inputs/x"),
                (r#""driver":"server","driver":"agent""#, "/params/arguments/driver"),
            ] {
                for arguments in [format!("{{{other},{rest}}}"), format!("{{{rest},{other}}}")] {
                    let wrong = received(&arguments).await.unwrap_err();
                    assert_eq!((&wrong["id"], &wrong["error"]["code"]), (&json!(7), &json!(-32602)), "{arguments}");
                    assert!(wrong["error"]["message"].as_str().unwrap().contains(at), "{arguments}: {wrong}");
                }
            }
        }
    }

    #[tokio::test]
    async fn a_plan_arrives_as_it_was_written() {
        let plan = r#"{"name":"a","name":"b","n":9007199254740993}"#;
        for field in ["plan", "pl\\u0061n"] {
            let arguments = received(&format!("{{\"{field}\":{plan},\"inputs\":{{\"x\":1}}}}")).await.unwrap();
            assert_eq!(arguments, json!({ "plan": plan, "inputs": { "x": 1 } }));
        }
    }
}
