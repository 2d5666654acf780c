//! JSON-RPC over a pair of pipes, one message per line. Whatever comes gets an answer if one can be given: what cannot
//! be read, what is too long, and what is no message of the protocol.

use crate::limits::MESSAGE_BYTES_MAX;
use crate::lines::{Line, Lines};
use crate::mcp::message::{Wrong, read};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, GetMeta, ProtocolVersion, ServerJsonRpcMessage,
};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;

#[derive(Debug)]
pub struct Pipes<R, W> {
    lines: Lines<R>,
    writer: Arc<Mutex<Option<W>>>,
    /// The client has said how it speaks.
    has_begun: bool,
}

impl<R, W> Pipes<R, W>
where
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Unpin,
{
    pub fn new(reader: R, writer: W) -> Pipes<R, W> {
        let (lines, writer) = (Lines::new(reader, MESSAGE_BYTES_MAX), Arc::new(Mutex::new(Some(writer))));
        Pipes { lines, writer, has_begun: false }
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
                    Ok(Some(message)) => {
                        self.has_begun |= begins(&message);
                        // The library would hang up on one that begins with something that wants no answer.
                        if !self.has_begun && !matches!(message, ClientJsonRpcMessage::Request(_)) {
                            continue;
                        }
                        return Some(message);
                    }
                    Ok(None) => continue,
                    Err(wrong) => wrong,
                },
                Ok(Line::TooLong(id)) => {
                    let message = format!("a message may have {MESSAGE_BYTES_MAX} bytes, this one has more");
                    Wrong::of(id.unwrap_or_default(), ErrorCode::INVALID_REQUEST, message)
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

/// Whether a client begins with this: by introducing itself, or with a request that says all there is to know of it.
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
