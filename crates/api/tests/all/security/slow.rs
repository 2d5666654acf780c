//! Slow clients, too many clients, and open requests at shutdown.

use crate::security::harbour::{Answer, Harbour, PATIENCE, hear};
use crate::security::routes::counted;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use rutter_api::http::listen::{ConnectionLimits, ConnectionSlots, serve_with_slots};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

const SLOW: usize = 500;

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_slow_connections_block_no_other_and_are_closed() {
    let harbour = Harbour::new().await;
    let host = format!("Host: {}\r\n", harbour.address);
    let beginnings = [
        String::new(),
        "G".to_owned(),
        "GET /healthz HTTP/1.1\r\n".to_owned(),
        format!("GET /healthz HTTP/1.1\r\n{host}X-Slow: "),
        format!("POST /enter HTTP/1.1\r\n{host}"),
    ];
    let mut slow = Vec::new();
    for number in 0..SLOW {
        let mut stream = TcpStream::connect(&harbour.address).await.unwrap();
        stream.write_all(beginnings[number % beginnings.len()].as_bytes()).await.unwrap();
        slow.push(stream);
    }
    for _ in 0..50 {
        assert_eq!(harbour.get("/healthz", &[]).await.status, 200);
        assert_eq!(harbour.get("/enter", &[]).await.status, 200);
    }
    // Each sends one byte more, which does not extend its time.
    for stream in &mut slow {
        let _ = stream.write_all(b"a").await;
    }
    let ended = futures::future::join_all(slow.into_iter().map(hear)).await;
    assert!(ended.iter().all(|answer| matches!(answer.status, 0 | 400 | 408)), "all were closed");
    assert_eq!(harbour.get("/healthz", &[]).await.status, 200);
    counted("slow connections", SLOW);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_body_times_out() {
    let harbour =
        Harbour::on(ConnectionLimits { body_time_max: Duration::from_millis(300), ..ConnectionLimits::default() })
            .await;
    let agent = crate::security::harbour::AGENT;
    for (path, headers) in [
        ("/enter", "Content-Type: application/x-www-form-urlencoded\r\n".to_owned()),
        ("/mcp", format!("Authorization: Bearer {agent}\r\nContent-Type: application/json\r\n")),
        ("/api/v1/plans/check", format!("Authorization: Bearer {agent}\r\nContent-Type: application/json\r\n")),
    ] {
        let mut stream = TcpStream::connect(&harbour.address).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: {}\r\n{headers}", harbour.address);
        stream.write_all(format!("{head}Content-Length: 1000\r\n\r\n{{").as_bytes()).await.unwrap();
        let answer = hear(stream).await;
        assert_eq!(answer.status, 408, "{path} {answer:?}");
    }
    counted("slow bodies", 3);
}

async fn listening(terms: ConnectionLimits, router: Router) -> (String, ConnectionSlots, CancellationToken) {
    let (places, closing) = (ConnectionSlots::of(terms), CancellationToken::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(serve_with_slots(places.clone(), listener, router, closing.clone()));
    (address, places, closing)
}

async fn ask(address: &str, path: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    hear(stream).await
}

/// Waits until a condition holds.
async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("the condition holds in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_frees_its_slot() {
    let terms = ConnectionLimits { stall_time_max: Duration::from_millis(300), ..ConnectionLimits::default() };
    let router = Router::new().route("/", get(|| async { "x".repeat(64 << 20) }));
    let (address, places, closing) = listening(terms, router).await;
    let mut deaf = Vec::new();
    for number in 1..=20 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).await.unwrap();
        deaf.push(stream);
        until(|| places.taken() == number || number > 1).await;
    }
    until(|| places.taken() == 0).await;
    let whole = ask(&address, "/").await;
    assert_eq!((whole.status, whole.body.len()), (200, 64 << 20), "a client that reads gets all of it");
    drop(deaf);
    closing.cancel();
    counted("answers nobody takes", 21);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_beyond_the_limit_gets_an_error_until_another_closes() {
    let terms = ConnectionLimits { connections_max: 8, ..ConnectionLimits::default() };
    let (address, places, closing) = listening(terms, Router::new().route("/", get(|| async { "in\n" }))).await;
    let mut open = Vec::new();
    for number in 1..=8 {
        open.push(TcpStream::connect(&address).await.unwrap());
        until(|| places.taken() == number).await;
    }
    for _ in 0..3 {
        let turned_away = ask(&address, "/").await;
        assert_eq!((turned_away.status, turned_away.header("retry-after")), (503, Some("1")), "{turned_away:?}");
        assert!(turned_away.has("server.busy"), "{turned_away:?}");
    }
    open.pop();
    until(|| places.taken() == 7).await;
    assert_eq!(ask(&address, "/").await.status, 200);
    closing.cancel();
    counted("connections too many", 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_shutdown_short_requests_finish_and_long_ones_get_an_error() {
    let (arrived, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (at_never, at_soon, leave) = (Arc::clone(&arrived), Arc::clone(&arrived), Arc::clone(&go));
    let closing_seen = CancellationToken::new();
    let failing = closing_seen.clone();
    let router = Router::new()
        .route(
            "/never",
            get(move || async move {
                at_never.notify_one();
                std::future::pending::<&str>().await
            }),
        )
        .route(
            "/soon",
            get(move || async move {
                at_soon.notify_one();
                leave.notified().await;
                "done\n"
            }),
        )
        .route(
            "/fails",
            get(move || async move {
                failing.cancelled().await;
                StatusCode::INTERNAL_SERVER_ERROR
            }),
        );
    let (address, places, closing) = listening(ConnectionLimits::default(), router).await;
    let waiting = ["/never", "/soon", "/fails"].map(|path| {
        let address = address.clone();
        tokio::spawn(async move { ask(&address, path).await })
    });
    arrived.notified().await;
    arrived.notified().await;
    until(|| places.taken() == 3).await;
    closing.cancel();
    closing_seen.cancel();
    go.notify_one();
    let [never, soon, fails] = futures::future::join_all(waiting).await.try_into().unwrap();
    let (never, soon, fails) = (never.unwrap(), soon.unwrap(), fails.unwrap());
    assert_eq!((soon.status, soon.body.as_str()), (200, "done\n"));
    for answer in [never, fails] {
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.has("engine.closing"), "{answer:?}");
    }
    assert!(TcpStream::connect(&address).await.is_err(), "no connection is accepted");
    counted("endings", 3);
}
