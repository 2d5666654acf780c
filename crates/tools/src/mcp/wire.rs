//! The two pipes of a child: one JSON-RPC message per line, none of them longer than the limit.
//!
//! It records of which requests a byte has left, so that after a loss it is known which calls were never sent.

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, NumberOrString, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio_util::sync::CancellationToken;

/// Marks an answer that has an id but cannot be parsed; no server sends it by accident.
pub(super) const UNREADABLE: ErrorCode = ErrorCode(i32::MIN);

/// The state of a connection over pipes, while it is used and after it ended.
#[derive(Default)]
pub(super) struct PipeState {
    requests: Mutex<PipeRequests>,
    fault: Mutex<Option<String>>,
    noise: AtomicU64,
    /// Cancelled when nothing more can come from the server.
    pub(super) lost: CancellationToken,
}

#[derive(Default)]
struct PipeRequests {
    /// Requests of which a byte may have left, and which have no answer.
    open: HashSet<RequestId>,
    /// Must not be sent any more.
    barred: HashSet<RequestId>,
}

impl PipeState {
    /// Whether nothing of this unanswered request has left. If so, nothing of it ever will.
    pub(super) fn never_sent(&self, id: &RequestId) -> bool {
        let mut requests = self.requests();
        if requests.open.contains(id) {
            return false;
        }
        requests.barred.insert(id.clone());
        true
    }

    /// The caller has stopped waiting; a late answer is noise.
    pub(super) fn forget(&self, id: &RequestId) {
        self.requests().open.remove(id);
    }

    /// Why the connection was given up, if the server violated the protocol.
    pub(super) fn fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many lines were not messages, or answered no open request.
    pub(super) fn noise(&self) -> u64 {
        self.noise.load(Ordering::Relaxed)
    }

    fn begin(&self, id: &RequestId) -> bool {
        let mut requests = self.requests();
        !requests.barred.contains(id) && requests.open.insert(id.clone())
    }

    /// Whether the answer belongs to an open request. Some servers turn a numeric id into a string.
    fn answered(&self, id: &RequestId) -> bool {
        let mut requests = self.requests();
        let number = match id {
            NumberOrString::String(text) => text.parse().ok().map(NumberOrString::Number),
            NumberOrString::Number(_) => None,
        };
        requests.open.remove(id) || number.is_some_and(|id| requests.open.remove(&id))
    }

    fn give_up(&self, fault: String) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }

    fn count_noise(&self) {
        self.noise.fetch_add(1, Ordering::Relaxed);
    }

    fn requests(&self) -> MutexGuard<'_, PipeRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The transport over a child's standard input and output.
pub(super) struct PipeTransport {
    read: BufReader<ChildStdout>,
    /// The line that is being read. Kept here because a read may be cancelled and resumed at any point.
    line: Vec<u8>,
    line_bytes_max: usize,
    write: Arc<tokio::sync::Mutex<Option<ChildStdin>>>,
    wire: Arc<PipeState>,
}

impl PipeTransport {
    pub(super) fn new(
        stdin: ChildStdin,
        stdout: ChildStdout,
        line_bytes_max: usize,
        wire: Arc<PipeState>,
    ) -> PipeTransport {
        PipeTransport {
            read: BufReader::with_capacity(64 * 1024, stdout),
            line: Vec::new(),
            line_bytes_max,
            write: Arc::new(tokio::sync::Mutex::new(Some(stdin))),
            wire,
        }
    }

    /// Reads on to the end of the line; `None` when there will be no more lines.
    async fn next_line(&mut self) -> Option<()> {
        loop {
            let available = self.read.fill_buf().await.ok()?;
            if available.is_empty() {
                if !self.line.is_empty() {
                    self.wire.give_up("it ended in the middle of a line".to_owned());
                }
                return None;
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            if self.line.len() + taken > self.line_bytes_max {
                let limit = self.line_bytes_max;
                self.wire.give_up(format!("it sent a line of more than {limit} bytes"));
                return None;
            }
            self.line.extend_from_slice(&available[..taken]);
            self.read.consume(taken);
            if end.is_some() {
                return Some(());
            }
        }
    }

    /// The message on the line, unless it is noise.
    fn message(&self) -> Option<ServerJsonRpcMessage> {
        if self.line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let message = serde_json::from_slice(&self.line).ok().or_else(|| unreadable_answer(&self.line));
        let awaited = match &message {
            None => false,
            Some(ServerJsonRpcMessage::Response(response)) => self.wire.answered(&response.id),
            Some(ServerJsonRpcMessage::Error(error)) => error.id.as_ref().is_none_or(|id| self.wire.answered(id)),
            Some(_) => true,
        };
        if !awaited {
            self.wire.count_noise();
        }
        message.filter(|_| awaited)
    }
}

impl Transport<RoleClient> for PipeTransport {
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let (write, wire) = (self.write.clone(), self.wire.clone());
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            let Some(stdin) = write.as_mut() else {
                return Err(io::ErrorKind::NotConnected.into());
            };
            let ClientJsonRpcMessage::Request(request) = &message else {
                return stdin.write_all(&line).await;
            };
            if !wire.begin(&request.id) {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "the call ended before it was sent"));
            }
            let mut sent = 0;
            while sent < line.len() {
                match stdin.write(&line[sent..]).await {
                    Ok(count @ 1..) => sent += count,
                    broken => {
                        // The pipe was gone before it took anything.
                        if sent == 0 {
                            wire.forget(&request.id);
                        }
                        return Err(broken.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into()));
                    }
                }
            }
            stdin.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if self.next_line().await.is_none() {
                self.wire.lost.cancel();
                return None;
            }
            let message = self.message();
            self.line.clear();
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // A message the server does not read may hold the pipe; it is closed then when the server is ended.
        if let Ok(mut write) = self.write.try_lock() {
            drop(write.take());
        }
        Ok(())
    }
}

/// An invalid answer still ends its request: no other one will come.
fn unreadable_answer(line: &[u8]) -> Option<ServerJsonRpcMessage> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let answer = value.as_object().filter(|answer| !answer.contains_key("method"))?;
    let id: RequestId = serde_json::from_value(answer.get("id")?.clone()).ok()?;
    let error = ErrorData::new(UNREADABLE, "the answer is not a valid JSON-RPC message", None);
    Some(ServerJsonRpcMessage::error(error, Some(id)))
}
