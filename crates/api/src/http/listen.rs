//! The listener: accepts connections and keeps them from blocking each other.
//!
//! Slow clients are disconnected, clients beyond the limit get an error, and shutdown answers every open request.

mod stall_timeout;

use crate::admit::PeerAddress;
use crate::admit::refused;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rutter_app::error::AppError;
use rutter_app::limits::{
    BODY_TIME_MAX, HEAD_BYTES_MAX, HEAD_TIME_MAX, HEADERS_MAX, HTTP_CONNECTIONS_MAX, STALL_TIME_MAX, URL_BYTES_MAX,
};
use stall_timeout::StallTimeoutStream;
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

/// How long open requests may take to finish at shutdown.
const ENDING: Duration = Duration::from_secs(1);
/// How long the last responses may take to be sent.
const SENDING: Duration = Duration::from_millis(500);
/// Connections beyond the limit that get an error at the same time; others are closed at once.
const TURNED_AWAY_MAX: usize = 64;
/// How long sending that error may take.
const TURNED_AWAY_TIME_MAX: Duration = Duration::from_secs(1);

/// How many connections are allowed, and how long requests may take.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    pub connections_max: usize,
    pub head_time_max: Duration,
    pub body_time_max: Duration,
    /// How long a client may stall while a response is sent.
    pub stall_time_max: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits {
            connections_max: HTTP_CONNECTIONS_MAX,
            head_time_max: HEAD_TIME_MAX,
            body_time_max: BODY_TIME_MAX,
            stall_time_max: STALL_TIME_MAX,
        }
    }
}

/// Slots for connections, with their limits.
#[derive(Clone, Debug)]
pub struct ConnectionSlots {
    limits: ConnectionLimits,
    free: Arc<Semaphore>,
}

impl ConnectionSlots {
    pub fn of(terms: ConnectionLimits) -> ConnectionSlots {
        ConnectionSlots { limits: terms, free: Arc::new(Semaphore::new(terms.connections_max)) }
    }

    pub fn taken(&self) -> usize {
        self.limits.connections_max - self.free.available_permits()
    }
}

impl Default for ConnectionSlots {
    fn default() -> ConnectionSlots {
        ConnectionSlots::of(ConnectionLimits::default())
    }
}

/// Serves until shutdown.
pub async fn serve(listener: TcpListener, router: Router, closing: CancellationToken) -> io::Result<()> {
    serve_with_slots(ConnectionSlots::default(), listener, router, closing).await
}

/// The same with given slots, so that the caller can count connections.
pub async fn serve_with_slots(
    places: ConnectionSlots,
    listener: TcpListener,
    router: Router,
    closing: CancellationToken,
) -> io::Result<()> {
    let ConnectionSlots { limits: terms, free: places } = places;
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let hosts = ConnectionHandler {
        router,
        limits: terms,
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
            // Probably out of file descriptors; wait for open connections to end.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => {
                let hosts = hosts.clone();
                tokio::spawn(async move {
                    hosts.serve_connection(stream, peer.ip()).await;
                    drop(place);
                });
            }
            Err(_) => {
                if let Ok(place) = Arc::clone(&turned_away).try_acquire_owned() {
                    tokio::spawn(async move {
                        // A client that does not read the error is ignored.
                        let _ = timeout(TURNED_AWAY_TIME_MAX, refuse_connection(stream, terms)).await;
                        drop(place);
                    });
                }
            }
        }
    }
    drop(listener);
    // All connections have ended when every slot is free.
    let all = || places.acquire_many(terms.connections_max as u32);
    if timeout(ENDING, all()).await.is_err() {
        hosts.late.cancel();
        let _ = timeout(SENDING, all()).await;
    }
    hosts.over.cancel();
    Ok(())
}

#[derive(Clone)]
struct ConnectionHandler {
    router: Router,
    limits: ConnectionLimits,
    closing: CancellationToken,
    /// Requests without a response are answered with an error now.
    late: CancellationToken,
    /// Connections are closed now.
    over: CancellationToken,
}

impl ConnectionHandler {
    async fn serve_connection(&self, stream: TcpStream, peer: IpAddr) {
        // Small responses are sent at once.
        let _ = stream.set_nodelay(true);
        let service = service_fn(|request| self.answer(request, peer));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head_time_max)
            // The gate has the exact limits; this bounds the buffer.
            .max_buf_size(2 * (HEAD_BYTES_MAX + URL_BYTES_MAX))
            .max_headers(HEADERS_MAX)
            .serve_connection(TokioIo::new(StallTimeoutStream::new(stream, self.limits.stall_time_max)), service);
        let mut connection = pin!(connection);
        let mut is_closing = false;
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!("an HTTP connection ended: {error}");
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
        // A proxy may have used another length, so bytes after a chunked request are not parsed as a request.
        let is_chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
        let mut request: Request =
            request.map(|body| Body::new(TimedBody::new(body, self.limits.body_time_max, Arc::clone(&is_slow))));
        request.extensions_mut().insert(PeerAddress(peer));
        let mut router = self.router.clone();
        let response = tokio::select! {
            response = router.call(request) => response?,
            () = self.late.cancelled() => closing(),
        };
        let mut response = match response.status() {
            _ if is_slow.load(Ordering::Relaxed) => slow(self.limits.body_time_max),
            // During shutdown any server error is due to the shutdown.
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
    let error = AppError::new("engine.closing", "the server is shutting down; the request may have taken effect");
    let app_error = error.hint("check the state before sending it again");
    let mut response = refused(StatusCode::SERVICE_UNAVAILABLE, &AppError { retryable: true, ..app_error });
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn slow(time_max: Duration) -> Response {
    let message = format!("the body was not complete within {} seconds", time_max.as_secs());
    let mut response = refused(StatusCode::REQUEST_TIMEOUT, &AppError::new("server.arguments", message));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn refuse_connection(mut stream: TcpStream, terms: ConnectionLimits) -> io::Result<()> {
    let error =
        AppError::new("server.busy", format!("all {} connections are in use; try again", terms.connections_max));
    let body = AppError { retryable: true, ..error }.json().to_string();
    let head =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close";
    stream.write_all(format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
    stream.shutdown().await?;
    // Closing with unread bytes would reset the connection and lose the response.
    let mut ignored = [0; 1_024];
    while stream.read(&mut ignored).await? > 0 {}
    Ok(())
}

/// A body that must arrive completely within a time limit.
struct TimedBody {
    body: Incoming,
    until: Pin<Box<Sleep>>,
    is_slow: Arc<AtomicBool>,
}

impl TimedBody {
    fn new(body: Incoming, time_max: Duration, is_slow: Arc<AtomicBool>) -> TimedBody {
        TimedBody { body, until: Box::pin(sleep(time_max)), is_slow }
    }
}

impl HttpBody for TimedBody {
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
        Poll::Ready(Some(Err("the body arrived too slowly".into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
