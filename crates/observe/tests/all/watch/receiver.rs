//! A webhook receiver: records requests and gives prepared answers.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;

/// One recorded request.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub id: String,
    pub timestamp: String,
    pub signature: String,
    pub content_type: String,
    pub bytes: Vec<u8>,
    pub body: Value,
}

impl Arrival {
    pub fn kind(&self) -> &str {
        self.body["type"].as_str().unwrap()
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Answer {
    Status(u16),
    /// With a `Retry-After` in seconds.
    Later(u16, u64),
    /// Never answers.
    Silence,
}

#[derive(Clone)]
pub struct Receiver {
    pub url: String,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
}

impl Receiver {
    /// Gives each answer once, and then always 200.
    pub async fn new(answers: &[Answer]) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Receiver {
            url: format!("http://{}/hook", listener.local_addr().unwrap()),
            arrivals: Arc::default(),
            answers: Arc::new(Mutex::new(answers.iter().copied().collect())),
        };
        let router = Router::new().route("/hook", post(take)).with_state(receiver.clone());
        // It ends with the runtime of its test.
        tokio::spawn(async move { axum::serve(listener, router).await });
        receiver
    }

    /// The requests so far.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.lock().unwrap().clone()
    }

    pub fn kinds(&self) -> Vec<String> {
        self.arrivals().iter().map(|arrival| arrival.kind().to_owned()).collect()
    }

    /// Waits for a request that matches.
    pub async fn hears(&self, fits: impl Fn(&Arrival) -> bool) -> Arrival {
        for _ in 0..1_000 {
            if let Some(arrival) = self.arrivals().into_iter().find(&fits) {
                return arrival;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("no matching request arrived; there were {:?}", self.kinds());
    }

    pub async fn hears_kind(&self, kind: &str) -> Arrival {
        self.hears(|arrival| arrival.kind() == format!("dev.rutter.{kind}.v1")).await
    }

    pub async fn has_heard(&self, count: usize) -> Vec<Arrival> {
        for _ in 0..1_000 {
            if self.arrivals().len() >= count {
                return self.arrivals();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("expected {count} requests; there were {:?}", self.kinds());
    }
}

async fn take(State(receiver): State<Receiver>, headers: HeaderMap, bytes: Bytes) -> Response {
    let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
    let arrival = Arrival {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
        content_type: header("content-type"),
        bytes: bytes.to_vec(),
        body: serde_json::from_slice(&bytes).unwrap(),
    };
    receiver.arrivals.lock().unwrap().push(arrival);
    let answer = receiver.answers.lock().unwrap().pop_front().unwrap_or(Answer::Status(200));
    match answer {
        Answer::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Answer::Later(status, seconds) => {
            (StatusCode::from_u16(status).unwrap(), [("retry-after", seconds.to_string())]).into_response()
        }
        Answer::Silence => std::future::pending().await,
    }
}
