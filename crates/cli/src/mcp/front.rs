//! The thin front: passes messages between an agent's pipes and the server's socket.
//!
//! When the server ends, another is started and greeted as the client greeted the first. What was asked and not
//! answered by then is answered here, truthfully: nobody knows whether it was done.

use crate::daemon::Starter;
use rutter_server::limits::MESSAGE_BYTES_MAX;
use rutter_server::lines::{Line, Lines};
use rutter_server::socket::Greeting;
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// Answers of the server may hold resources, and are trusted to end.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// A server that ends again and again is not started for ever.
const RESTARTS_MAX: u32 = 20;

pub(super) async fn run(starter: Starter, greeting: Greeting) -> anyhow::Result<()> {
    let mut front = Front::new(starter, greeting);
    let mut client = Lines::new(BufReader::new(tokio::io::stdin()), MESSAGE_BYTES_MAX);
    let too_long = format!("a message may have {MESSAGE_BYTES_MAX} bytes, this one has more");
    let mut server = front.connect().await?;
    loop {
        tokio::select! {
            line = client.next() => match line? {
                Line::Text(line) => {
                    if front.pass(&mut server, line).await.is_err() {
                        server = front.again().await?;
                    }
                }
                Line::TooLong(id) => front.refuse(id, -32600, &too_long).await?,
                Line::End => return front.leave(server).await,
            },
            line = server.reader.next() => match line {
                Ok(Line::Text(line)) => front.pass_back(line).await?,
                Ok(Line::TooLong(_)) => {}
                Ok(Line::End) | Err(_) => server = front.again().await?,
            },
        }
    }
}

struct Server {
    reader: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

struct Front {
    starter: Starter,
    greeting: Greeting,
    stdout: tokio::io::Stdout,
    /// How the client introduced itself, to do it again with another server.
    introduction: Vec<Vec<u8>>,
    /// Requests without an answer, by their id.
    open: BTreeMap<String, Value>,
    /// The answer to an introduction the client did not make.
    unheard: Option<String>,
    restarts: u32,
}

impl Front {
    fn new(starter: Starter, greeting: Greeting) -> Front {
        let stdout = tokio::io::stdout();
        let (introduction, open) = (Vec::new(), BTreeMap::new());
        Front { starter, greeting, stdout, introduction, open, unheard: None, restarts: 0 }
    }

    async fn connect(&mut self) -> anyhow::Result<Server> {
        let starter = self.starter.clone();
        let stream = tokio::task::spawn_blocking(move || starter.connect()).await??;
        stream.set_nonblocking(true)?;
        let (reader, mut writer) = UnixStream::from_std(stream)?.into_split();
        writer.write_all(&line(serde_json::to_vec(&self.greeting)?)).await?;
        Ok(Server { reader: Lines::new(BufReader::new(reader), ANSWER_BYTES_MAX), writer })
    }

    /// The server is gone: says so to whoever waits, and comes to another one.
    async fn again(&mut self) -> anyhow::Result<Server> {
        self.restarts += 1;
        anyhow::ensure!(self.restarts <= RESTARTS_MAX, "the server ended {RESTARTS_MAX} times");
        let introduced =
            self.introduction.first().and_then(|line| Some(Envelope::read(line)?.id?.to_string()));
        for (key, id) in std::mem::take(&mut self.open) {
            if introduced.as_ref() == Some(&key) {
                // The client has not got this one yet, so the next server's answer is for it.
                self.open.insert(key, id);
                continue;
            }
            let message = "engine.closing: the server ended before it answered. What was asked may have been done: \
                           look with `status`, or ask again with the same request_id";
            self.tell(
                &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": message } }),
            )
            .await?;
        }
        let mut server = self.connect().await?;
        for said in &self.introduction {
            server.writer.write_all(&line(said.clone())).await?;
        }
        self.unheard = introduced.filter(|key| !self.open.contains_key(key));
        Ok(server)
    }

    /// From the client to the server.
    async fn pass(&mut self, server: &mut Server, text: Vec<u8>) -> std::io::Result<()> {
        if text.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        if let Some(Envelope { id, method: Some(method) }) = Envelope::read(&text) {
            if method == "initialize" {
                self.introduction = vec![text.clone()];
            } else if method == "notifications/initialized" {
                self.introduction.push(text.clone());
            }
            if let Some(id) = id {
                self.open.insert(id.to_string(), id);
            }
        }
        server.writer.write_all(&line(text)).await
    }

    /// From the server to the client.
    async fn pass_back(&mut self, text: Vec<u8>) -> std::io::Result<()> {
        if let Some(Envelope { id: Some(id), method: None }) = Envelope::read(&text) {
            let key = id.to_string();
            self.open.remove(&key);
            if self.unheard.as_ref() == Some(&key) {
                self.unheard = None;
                return Ok(());
            }
        }
        self.stdout.write_all(&line(text)).await?;
        self.stdout.flush().await
    }

    /// The client is done: lets the server finish what it has to say.
    async fn leave(mut self, mut server: Server) -> anyhow::Result<()> {
        server.writer.shutdown().await?;
        while let Ok(Line::Text(line)) = server.reader.next().await {
            self.pass_back(line).await?;
        }
        Ok(())
    }

    async fn refuse(&mut self, id: Option<Value>, code: i32, message: &str) -> std::io::Result<()> {
        self.tell(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })).await
    }

    async fn tell(&mut self, message: &Value) -> std::io::Result<()> {
        self.stdout.write_all(&line(message.to_string().into_bytes())).await?;
        self.stdout.flush().await
    }
}

fn line(mut text: Vec<u8>) -> Vec<u8> {
    text.push(b'\n');
    text
}

/// What the front looks at; the rest is between client and server.
#[derive(Debug, Deserialize)]
struct Envelope<'a> {
    id: Option<Value>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
}

impl Envelope<'_> {
    fn read(line: &[u8]) -> Option<Envelope<'_>> {
        serde_json::from_slice(line).ok()
    }
}
