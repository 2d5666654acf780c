//! Sending webhooks: where nothing is sent, and what is reported of a response.

use rutter_core::port::outbox::{HttpSender, OutgoingRequest, SendOutcome};
use rutter_core::port::tools::PortFuture;
use rutter_core::time::Millis;
use rutter_tools::guard::{Resolver, SystemResolver};
use rutter_tools::http_sender::{BODY_BYTES_MAX, GuardedHttpSender};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// `PORT` stands for a port that is open on every address of this machine.
const REFUSED: [&str; 54] = [
    "https://127.0.0.1:PORT/",
    "http://127.0.0.1:PORT/",
    "https://127.1:PORT/",
    "https://2130706433:PORT/",
    "https://0x7f000001:PORT/",
    "https://0x7f.1:PORT/",
    "https://0177.0.0.1:PORT/",
    "https://017700000001:PORT/",
    "https://127.0.0.1.:PORT/",
    "https://127.0.0.53:PORT/",
    "https://①②⑦.0.0.1:PORT/",
    "https://127。0。0。1:PORT/",
    "https://127．0．0．1:PORT/",
    "https://%31%32%37.0.0.1:PORT/",
    "https://[::1]:PORT/",
    "https://[::ffff:127.0.0.1]:PORT/",
    "https://[::ffff:7f00:1]:PORT/",
    "https://[::127.0.0.1]:PORT/",
    "https://0.0.0.0:PORT/",
    "https://0:PORT/",
    "https://[::]:PORT/",
    "https://10.0.0.1/",
    "https://172.16.0.1/",
    "https://172.31.255.255/",
    "https://192.168.0.1/",
    "https://3232235777/",
    "https://169.254.169.254/latest/meta-data/",
    "http://169.254.169.254/latest/meta-data/",
    "https://2852039166/",
    "https://0251.0376.0251.0376/",
    "https://[::ffff:169.254.169.254]/",
    "https://[fe80::1]/",
    "https://[fd00:ec2::254]/",
    "https://100.64.0.1/",
    "https://100.100.100.200/",
    "https://192.0.0.192/",
    "https://198.18.0.1/",
    "https://224.0.0.1/",
    "https://255.255.255.255/",
    "https://[64:ff9b::7f00:1]:PORT/",
    "https://[64:ff9b:1::7f00:1]:PORT/",
    "https://[2002:7f00:1::]:PORT/",
    "https://[2001::1]/",
    "https://[ff02::1]/",
    "http://example.com/",
    "https://user@example.com/",
    "https://user:password@127.0.0.1:PORT/",
    "https://example.com@127.0.0.1:PORT/",
    "https://@127.0.0.1:PORT/",
    "https://example.com\\@127.0.0.1:PORT/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:PORT/",
    "ftp://127.0.0.1:PORT/",
    "https:// 127.0.0.1:PORT/",
];

/// Listens on every address, and counts connections.
struct Listener {
    port: u16,
    came: Arc<AtomicUsize>,
    heard: Arc<Mutex<String>>,
}

impl Listener {
    async fn new(answer: &'static str) -> Listener {
        let listener = TcpListener::bind("[::]:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (came, heard) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(String::new())));
        let (count, stored) = (Arc::clone(&came), Arc::clone(&heard));
        // It ends with the runtime of its test.
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let mut bytes = vec![0; 4096];
                let read = stream.read(&mut bytes).await.unwrap_or(0);
                stored.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Listener { port, came, heard }
    }

    fn came(&self) -> usize {
        self.came.load(Ordering::SeqCst)
    }
}

fn sender(allow: &[&str]) -> GuardedHttpSender {
    let allow: Vec<String> = allow.iter().map(|entry| (*entry).to_owned()).collect();
    GuardedHttpSender::new(&allow, Arc::new(SystemResolver)).unwrap()
}

fn sample(url: &str) -> OutgoingRequest {
    let headers = vec![("webhook-id".to_owned(), "default/1".to_owned())];
    OutgoingRequest { url: url.to_owned(), headers, body: b"{}".to_vec(), timeout: Millis(5_000) }
}

#[tokio::test]
async fn nothing_is_sent_to_internal_addresses_in_any_spelling() {
    let listener = Listener::new("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let sender = sender(&[]);
    for url in REFUSED {
        let url = url.replace("PORT", &listener.port.to_string());
        sender.check(&url).unwrap_err();
        let outcome = sender.send(sample(&url)).await;
        assert!(matches!(outcome, SendOutcome::Refused { .. }), "{url}: {outcome:?}");
    }
    assert_eq!(listener.came(), 0);
}

/// Gives each answer once, then the last one for ever.
struct Moving(Vec<IpAddr>, AtomicUsize);

impl Resolver for Moving {
    fn resolve(&self, _host: &str) -> PortFuture<'_, io::Result<Vec<IpAddr>>> {
        let at = self.1.fetch_add(1, Ordering::SeqCst).min(self.0.len() - 1);
        Box::pin(std::future::ready(Ok(vec![self.0[at]])))
    }
}

#[tokio::test]
async fn a_name_that_becomes_internal_after_its_check_gets_nothing() {
    let listener = Listener::new("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let addresses = vec!["127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap()];
    let moving = Arc::new(Moving(addresses, AtomicUsize::new(0)));
    let sender = GuardedHttpSender::new(&["127.0.0.1".to_owned()], Arc::clone(&moving) as Arc<dyn Resolver>).unwrap();
    // An address that is allowed may also be reached by a name, though only with TLS: here that fails after connecting.
    let url = format!("https://moving.example:{}/", listener.port);
    sender.check(&url).unwrap();
    assert!(matches!(sender.send(sample(&url)).await, SendOutcome::Failed { .. }));
    assert_eq!(listener.came(), 1);
    let outcome = sender.send(sample(&url)).await;
    assert!(matches!(&outcome, SendOutcome::Refused { why } if why.contains("127.0.0.2")), "{outcome:?}");
    assert_eq!((listener.came(), moving.1.load(Ordering::SeqCst)), (1, 2), "each request asks once");
}

#[tokio::test]
async fn redirects_are_reported_and_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let there = Listener::new("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        let answer =
            format!("HTTP/1.1 {status} x\r\nlocation: http://127.0.0.1:{}/\r\ncontent-length: 0\r\n\r\n", there.port);
        let here = Listener::new(answer.leak()).await;
        let outcome = sender(&["127.0.0.1"]).send(sample(&format!("http://127.0.0.1:{}/", here.port))).await;
        assert_eq!(outcome, SendOutcome::Answered { status, retry_after: None, text: String::new() });
        assert_eq!((here.came(), there.came()), (1, 0));
    }
}

#[tokio::test]
async fn headers_and_body_arrive_and_the_beginning_of_the_answer_is_reported() {
    let listener =
        Listener::new("HTTP/1.1 503 x\r\nretry-after: 7\r\ncontent-length: 12\r\n\r\nnot\tnow\x07 now").await;
    let sender = sender(&["127.0.0.1"]);
    let url = format!("http://127.0.0.1:{}/hook?a=b", listener.port);
    let outcome = sender.send(sample(&url)).await;
    let text = "not now  now".to_owned();
    assert_eq!(outcome, SendOutcome::Answered { status: 503, retry_after: Some(Millis(7_000)), text });
    let heard = listener.heard.lock().unwrap().clone();
    assert!(heard.starts_with("POST /hook?a=b HTTP/1.1\r\n"), "{heard}");
    assert!(heard.contains("webhook-id: default/1\r\n") && heard.ends_with("\r\n\r\n{}"), "{heard}");
}

#[tokio::test]
async fn an_answer_without_end_is_cut_and_one_that_never_comes_is_given_up() {
    let endless = format!("HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n{}", "x".repeat(100_000));
    let listener = Listener::new(endless.leak()).await;
    let sender = sender(&["127.0.0.1"]);
    let url = format!("http://127.0.0.1:{}/", listener.port);
    let SendOutcome::Answered { status: 200, text, .. } = sender.send(sample(&url)).await else { panic!() };
    assert_eq!(text.len(), 300);

    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let outcome = sender.send(OutgoingRequest { timeout: Millis(50), ..sample(&url) }).await;
    assert!(matches!(&outcome, SendOutcome::Failed { why } if why.starts_with("no answer in time")), "{outcome:?}");
}

#[tokio::test]
async fn an_invalid_request_is_refused_before_connecting() {
    let listener = Listener::new("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let sender = sender(&["127.0.0.1"]);
    let url = format!("http://127.0.0.1:{}/", listener.port);
    let large = OutgoingRequest { body: vec![b' '; BODY_BYTES_MAX + 1], ..sample(&url) };
    let header = OutgoingRequest { headers: vec![("x".to_owned(), "a\r\nb: c".to_owned())], ..sample(&url) };
    for delivery in [large, header] {
        assert!(matches!(sender.send(delivery).await, SendOutcome::Refused { .. }));
    }
    assert_eq!(listener.came(), 0);
    sender.check(&format!("https://example.com/{}", "x".repeat(2_100))).unwrap_err();
}
