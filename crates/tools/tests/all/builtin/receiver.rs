//! A receiver of webhooks on a real socket, and a sender over real HTTP.

use rutter_core::port::tools::PortFuture;
use rutter_tools::builtin::{WebhookOutcome, WebhookPoster};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Answers each POST with the next status, the last one for ever; `0` hangs up without an answer.
pub struct Receiver {
    pub url: String,
    pub heard: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Receiver {
    pub async fn new(statuses: &'static [u16]) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let stored = Arc::clone(&heard);
        // It ends with the runtime of its test.
        tokio::spawn(async move {
            let mut statuses = statuses.iter().copied();
            let mut status = 200;
            while let Ok((stream, _)) = listener.accept().await {
                status = statuses.next().unwrap_or(status);
                let request = answer(stream, status).await;
                stored.lock().unwrap().push(request);
            }
        });
        Receiver { url, heard }
    }

    pub fn count(&self) -> usize {
        self.heard.lock().unwrap().len()
    }
}

/// Takes one request; gives its idempotency key and its body.
async fn answer(stream: TcpStream, status: u16) -> (String, Value) {
    let mut stream = BufReader::new(stream);
    let (mut key, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let Some((name, value)) = line.trim().split_once(": ") else {
            if line.trim().is_empty() {
                break;
            }
            continue;
        };
        match name.to_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "idempotency-key" => key = value.to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    if status != 0 {
        let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
    (key, serde_json::from_slice(&body).unwrap())
}

pub struct Http(reqwest::Client);

impl Default for Http {
    fn default() -> Http {
        Http(rutter_tools::tls::client_builder().build().unwrap())
    }
}

impl WebhookPoster for Http {
    fn post<'a>(
        &'a self,
        url: &'a str,
        _: &'a [String],
        key: &'a str,
        body: Vec<u8>,
        timeout: Duration,
    ) -> PortFuture<'a, WebhookOutcome> {
        let request = self.0.post(url).header("Idempotency-Key", key).body(body).timeout(timeout);
        Box::pin(async move {
            match request.send().await {
                Ok(response) => WebhookOutcome::Answered(response.status().as_u16()),
                Err(error) if error.is_connect() => WebhookOutcome::NotSent(error.to_string()),
                Err(error) => WebhookOutcome::Unanswered(error.to_string()),
            }
        })
    }
}
