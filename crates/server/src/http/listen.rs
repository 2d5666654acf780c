//! The listener: takes connections, and lets none of them hold up the others.
//!
//! Whoever is slow is hung up on, whoever is one too many is told so, and at the end everybody gets an answer.

mod stalled;

use crate::auth::Peer;
use crate::auth::admit::refused;
use crate::fault::Fault;
use crate::limits::{
    BODY_TIME_MAX, HEAD_BYTES_MAX, HEAD_TIME_MAX, HEADERS_MAX, HTTP_CONNECTIONS_MAX, STALL_TIME_MAX,
    URL_BYTES_MAX,
};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use stalled::Stalled;
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

/// How long requests under way may take to end by themselves when the server closes.
const ENDING: Duration = Duration::from_secs(1);
/// How long the last answers may take to be sent.
const SENDING: Duration = Duration::from_millis(500);
/// Those that are one too many and are told so at the same time; others are hung up on.
const TURNED_AWAY_MAX: usize = 64;
/// How long one that is turned away may take to hear it.
const TURNED_AWAY_TIME_MAX: Duration = Duration::from_secs(1);

/// How many may come, and how long they may take.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub connections_max: usize,
    pub head_time_max: Duration,
    pub body_time_max: Duration,
    /// How long somebody may take nothing of an answer.
    pub stall_time_max: Duration,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            connections_max: HTTP_CONNECTIONS_MAX,
            head_time_max: HEAD_TIME_MAX,
            body_time_max: BODY_TIME_MAX,
            stall_time_max: STALL_TIME_MAX,
        }
    }
}

/// Places for connections, under some terms.
#[derive(Clone, Debug)]
pub struct Places {
    terms: Terms,
    free: Arc<Semaphore>,
}

impl Places {
    pub fn of(terms: Terms) -> Places {
        Places { terms, free: Arc::new(Semaphore::new(terms.connections_max)) }
    }

    pub fn taken(&self) -> usize {
        self.terms.connections_max - self.free.available_permits()
    }
}

impl Default for Places {
    fn default() -> Places {
        Places::of(Terms::default())
    }
}

/// Serves until it is told to close.
pub async fn serve(listener: TcpListener, router: Router, closing: CancellationToken) -> io::Result<()> {
    serve_in(Places::default(), listener, router, closing).await
}

/// The same, where somebody counts who is there.
pub async fn serve_in(
    places: Places,
    listener: TcpListener,
    router: Router,
    closing: CancellationToken,
) -> io::Result<()> {
    let Places { terms, free: places } = places;
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let hosts = Hosts {
        router,
        terms,
        closing: closing.clone(),
        late: CancellationToken::new(),
        over: CancellationToken::new(),
    };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = closing.cancelled() => break,
        };
        let Ok((stream, peer)) = accepted else {
            // Out of files, most likely; those under way will end.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => {
                let hosts = hosts.clone();
                tokio::spawn(async move {
                    hosts.converse(stream, peer.ip()).await;
                    drop(place);
                });
            }
            Err(_) => {
                if let Ok(place) = Arc::clone(&turned_away).try_acquire_owned() {
                    tokio::spawn(async move {
                        // One that does not listen does not matter.
                        let _ = timeout(TURNED_AWAY_TIME_MAX, turn_away(stream, terms)).await;
                        drop(place);
                    });
                }
            }
        }
    }
    drop(listener);
    // Everybody has left when every place is free.
    let all = || places.acquire_many(terms.connections_max as u32);
    if timeout(ENDING, all()).await.is_err() {
        hosts.late.cancel();
        let _ = timeout(SENDING, all()).await;
    }
    hosts.over.cancel();
    Ok(())
}

#[derive(Clone)]
struct Hosts {
    router: Router,
    terms: Terms,
    closing: CancellationToken,
    /// Whoever has no answer yet is told that the server closes.
    late: CancellationToken,
    /// Nothing is sent any more.
    over: CancellationToken,
}

impl Hosts {
    async fn converse(&self, stream: TcpStream, peer: IpAddr) {
        // Small answers go out at once.
        let _ = stream.set_nodelay(true);
        let service = service_fn(|request| self.answer(request, peer));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.terms.head_time_max)
            // The door has the exact limits; this keeps what never ends from being kept.
            .max_buf_size(2 * (HEAD_BYTES_MAX + URL_BYTES_MAX))
            .max_headers(HEADERS_MAX)
            .serve_connection(TokioIo::new(Stalled::new(stream, self.terms.stall_time_max)), service);
        let mut connection = pin!(connection);
        let mut is_closing = false;
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!("a connection over HTTP ended: {error}");
                    }
                    return;
                }
                () = self.closing.cancelled(), if !is_closing => {
                    is_closing = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = self.over.cancelled() => return,
            }
        }
    }

    async fn answer(&self, request: hyper::Request<Incoming>, peer: IpAddr) -> Result<Response, Infallible> {
        let is_slow = Arc::new(AtomicBool::new(false));
        // Somebody in front of us may have read another length beside it; what follows is not taken for a request.
        let is_chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
        let mut request: Request =
            request.map(|body| Body::new(Timed::new(body, self.terms.body_time_max, Arc::clone(&is_slow))));
        request.extensions_mut().insert(Peer(peer));
        let mut router = self.router.clone();
        let response = tokio::select! {
            response = router.call(request) => response?,
            () = self.late.cancelled() => closing(),
        };
        let mut response = match response.status() {
            _ if is_slow.load(Ordering::Relaxed) => slow(self.terms.body_time_max),
            // Whatever failed did so because everything ends.
            status if status.is_server_error() && self.closing.is_cancelled() => closing(),
            _ => response,
        };
        if is_chunked {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response)
    }
}

fn closing() -> Response {
    let fault = Fault::new("engine.closing", "the server ends; what was asked may have been done");
    let fault = fault.hint("look how things stand before asking again");
    let mut response = refused(StatusCode::SERVICE_UNAVAILABLE, &Fault { retryable: true, ..fault });
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn slow(time_max: Duration) -> Response {
    let message = format!("the body did not come whole within {} seconds", time_max.as_secs());
    let mut response = refused(StatusCode::REQUEST_TIMEOUT, &Fault::new("server.arguments", message));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn turn_away(mut stream: TcpStream, terms: Terms) -> io::Result<()> {
    let fault =
        Fault::new("server.busy", format!("{} connections are open; try again", terms.connections_max));
    let body = Fault { retryable: true, ..fault }.json().to_string();
    let head = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close";
    stream.write_all(format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
    stream.shutdown().await?;
    // Hanging up on what was not read would take the answer back.
    let mut ignored = [0; 1_024];
    while stream.read(&mut ignored).await? > 0 {}
    Ok(())
}

/// A body that has to come whole within a time.
struct Timed {
    body: Incoming,
    until: Pin<Box<Sleep>>,
    is_slow: Arc<AtomicBool>,
}

impl Timed {
    fn new(body: Incoming, time_max: Duration, is_slow: Arc<AtomicBool>) -> Timed {
        Timed { body, until: Box::pin(sleep(time_max)), is_slow }
    }
}

impl HttpBody for Timed {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if self.until.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.is_slow.store(true, Ordering::Relaxed);
        Poll::Ready(Some(Err("the body came too slowly".into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
