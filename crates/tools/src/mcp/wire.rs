//! The two pipes of a child: one JSON-RPC message per line, none of them longer than the limit.
//!
//! It records of which requests a byte has left, so that after a loss it is known which calls were never sent.

use super::outcome;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, NumberOrString, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use rutter_core::hash::Hash;
use rutter_core::port::tools::CallReporter;
use serde_json::Value;
use std::collections::{HashSet, VecDeque};
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
    /// The last calls of tools, whether or not they have ended.
    calls: VecDeque<SentRequest>,
}

/// A call of a tool that may be answered after it has ended, or a second time.
struct SentRequest {
    id: RequestId,
    /// Where its later answers are reported, and whether its tool declares the schema of its result.
    reporter: Option<(Arc<dyn CallReporter>, bool)>,
    /// Its last answer, so that the same one is not reported again.
    answer: Option<Hash>,
    reported: u32,
}

/// How many calls are remembered for their later answers.
const CALLS_MAX: usize = 1_024;
/// How many later answers to one call are reported: a server that repeats itself must not fill the journal.
const LATE_ANSWERS_MAX: u32 = 3;

impl PipeState {
    /// Whether nothing of this unanswered request has left. If so, nothing of it ever will.
    pub(super) fn never_sent(&self, id: &RequestId) -> bool {
        let mut requests = self.requests();
        if requests.open.contains(id) || requests.calls.iter().any(|call| call.id == *id && call.answer.is_some()) {
            return false;
        }
        requests.barred.insert(id.clone());
        true
    }

    /// The caller has stopped waiting. Returns whether the request was open until now; otherwise its answer has come.
    pub(super) fn forget(&self, id: &RequestId) -> bool {
        self.requests().open.remove(id)
    }

    /// Reports every later answer to a call that was sent.
    pub(super) fn report_late(&self, id: &RequestId, reporter: Arc<dyn CallReporter>, declares_output: bool) {
        let mut requests = self.requests();
        requests.remember(id);
        if let Some(call) = requests.calls.iter_mut().find(|call| call.id == *id) {
            call.reporter = Some((reporter, declares_output));
        }
    }

    /// Why the connection was given up, if the server violated the protocol.
    pub(super) fn fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many lines were not messages, or answered no open request.
    pub(super) fn noise(&self) -> u64 {
        self.noise.load(Ordering::Relaxed)
    }

    fn begin(&self, id: &RequestId, is_call: bool) -> bool {
        let mut requests = self.requests();
        if requests.barred.contains(id) {
            return false;
        }
        if is_call {
            requests.remember(id);
        }
        requests.open.insert(id.clone())
    }

    /// Nothing of a request that was begun has left.
    fn retract(&self, id: &RequestId) {
        let mut requests = self.requests();
        requests.open.remove(id);
        requests.calls.retain(|call| call.id != *id);
    }

    /// Whether the answer belongs to an open request. Some servers turn a numeric id into a string.
    fn answered(&self, id: &RequestId, answer: &[u8]) -> bool {
        let mut requests = self.requests();
        let number = number_of(id);
        let found = requests.open.remove(id) || number.as_ref().is_some_and(|id| requests.open.remove(id));
        if found && let Some(call) = requests.call(id) {
            call.answer = Some(Hash::of(&[answer]));
        }
        found
    }

    /// Where a new answer to a call that has ended is reported.
    fn late(&self, id: &RequestId, answer: &[u8]) -> Option<(Arc<dyn CallReporter>, bool)> {
        let mut requests = self.requests();
        let (call, answer) = (requests.call(id)?, Hash::of(&[answer]));
        if call.answer.replace(answer) == Some(answer) || call.reported == LATE_ANSWERS_MAX {
            return None;
        }
        call.reported += 1;
        call.reporter.clone()
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

impl PipeRequests {
    fn remember(&mut self, id: &RequestId) {
        if self.calls.iter().any(|call| call.id == *id) {
            return;
        }
        if self.calls.len() == CALLS_MAX {
            self.calls.pop_front();
        }
        self.calls.push_back(SentRequest { id: id.clone(), reporter: None, answer: None, reported: 0 });
    }

    fn call(&mut self, id: &RequestId) -> Option<&mut SentRequest> {
        let number = number_of(id);
        self.calls.iter_mut().find(|call| call.id == *id || Some(&call.id) == number.as_ref())
    }
}

fn number_of(id: &RequestId) -> Option<RequestId> {
    match id {
        NumberOrString::String(text) => text.parse().ok().map(NumberOrString::Number),
        NumberOrString::Number(_) => None,
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
        let Some(message) = message else {
            self.wire.count_noise();
            return None;
        };
        let id = match &message {
            ServerJsonRpcMessage::Response(response) => Some(response.id.clone()),
            ServerJsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let Some(id) = id.filter(|id| !self.wire.answered(id, &self.line)) else { return Some(message) };
        self.wire.count_noise();
        match self.wire.late(&id, &self.line) {
            Some((reporter, declares_output)) => reporter.late(outcome::of_late(message, declares_output)),
            None => tracing::debug!(request = %id, "an MCP server answered no open request; it is ignored"),
        }
        None
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
            let is_call = matches!(request.request, ClientRequest::CallToolRequest(_));
            if !wire.begin(&request.id, is_call) {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "the call ended before it was sent"));
            }
            let mut sent = 0;
            while sent < line.len() {
                match stdin.write(&line[sent..]).await {
                    Ok(count @ 1..) => sent += count,
                    broken => {
                        // The pipe was gone before it took anything.
                        if sent == 0 {
                            wire.retract(&request.id);
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
