//! The guard against a table of URLs, resolvers that lie, and real sockets.

use rutter_core::port::tools::PortFuture;
use rutter_tools::guard::{
    AddressGuard, AddressRefusal, Resolver, SystemResolver, client, connected, refused, while_connecting,
};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// URLs whose host is an address, in every spelling, or that are wrong in another way.
const REFUSED: [(&str, &str); 93] = [
    ("https://127.0.0.1/", "loopback"),
    ("https://127.1/", "loopback"),
    ("https://127.0.1/", "loopback"),
    ("https://2130706433/", "loopback"),
    ("https://0x7f000001/", "loopback"),
    ("https://0x7f.1/", "loopback"),
    ("https://0177.0.0.1/", "loopback"),
    ("https://0177.0x0.0.1/", "loopback"),
    ("https://017700000001/", "loopback"),
    ("https://127.0.0.1./", "loopback"),
    ("https://127.255.255.254:8443/x", "loopback"),
    ("https://①②⑦.0.0.1/", "loopback"),
    ("https://127。0。0。1/", "loopback"),
    ("https://127．0．0．1/", "loopback"),
    ("https://127｡0｡0｡1/", "loopback"),
    ("https://%31%32%37.0.0.1/", "loopback"),
    ("https://[::1]/", "loopback"),
    ("https://[0:0:0:0:0:0:0:1]/", "loopback"),
    ("https://[::ffff:127.0.0.1]/", "loopback"),
    ("https://[::ffff:7f00:1]/", "loopback"),
    ("https://[0:0:0:0:0:ffff:127.0.0.1]:443/", "loopback"),
    ("https://0.0.0.0/", "unspecified"),
    ("https://0/", "unspecified"),
    ("https://0x0/", "unspecified"),
    ("https://0.1.2.3/", "unspecified"),
    ("https://[::]/", "unspecified"),
    ("https://[::ffff:0.0.0.0]/", "unspecified"),
    ("https://10.0.0.1/", "private"),
    ("https://10.255.255.255/", "private"),
    ("https://012.0.0.1/", "private"),
    ("https://0xa000001/", "private"),
    ("https://167772161/", "private"),
    ("https://172.16.0.1/", "private"),
    ("https://172.31.255.255/", "private"),
    ("https://192.168.0.1/", "private"),
    ("https://192.168.257/", "private"),
    ("https://3232235777/", "private"),
    ("https://[::ffff:192.168.0.1]/", "private"),
    ("https://[::ffff:a00:1]/", "private"),
    ("https://169.254.169.254/latest/meta-data/", "link-local"),
    ("https://0xa9fea9fe/", "link-local"),
    ("https://2852039166/", "link-local"),
    ("https://0251.0376.0251.0376/", "link-local"),
    ("https://[::ffff:169.254.169.254]/", "link-local"),
    ("https://[fe80::1]/", "link-local"),
    ("https://[febf::1]/", "link-local"),
    ("https://100.64.0.1/", "carrier"),
    ("https://100.127.255.255/", "carrier"),
    ("https://[::ffff:100.64.0.1]/", "carrier"),
    ("https://192.0.0.1/", "protocols"),
    ("https://192.0.2.1/", "documentation"),
    ("https://198.51.100.1/", "documentation"),
    ("https://203.0.113.1/", "documentation"),
    ("https://[2001:db8::1]/", "documentation"),
    ("https://[3fff::1]/", "documentation"),
    ("https://[3fff:fff::1]/", "documentation"),
    ("https://192.88.99.1/", "6to4"),
    ("https://[2002:7f00:1::]/", "6to4"),
    ("https://[2002:a00:1::1]/", "6to4"),
    ("https://198.18.0.1/", "benchmarks"),
    ("https://198.19.255.255/", "benchmarks"),
    ("https://224.0.0.1/", "multicast"),
    ("https://239.255.255.255/", "multicast"),
    ("https://[ff02::1]/", "multicast"),
    ("https://240.0.0.1/", "reserved"),
    ("https://255.255.255.255/", "broadcast"),
    ("https://4294967295/", "broadcast"),
    ("https://[64:ff9b::7f00:1]/", "translated"),
    ("https://[64:ff9b::10.0.0.1]/", "translated"),
    ("https://[64:ff9b:1::1]/", "translated"),
    ("https://[2001::1]/", "Teredo"),
    ("https://[2001:10::1]/", "protocols"),
    ("https://[2001:20::1]/", "protocols"),
    ("https://[fc00::1]/", "unique-local"),
    ("https://[fd12:3456::1]/", "unique-local"),
    ("https://[fec0::1]/", "reserved"),
    ("https://[100::1]/", "reserved"),
    ("https://[::10.0.0.1]/", "reserved"),
    ("https://[4000::1]/", "reserved"),
    ("http://93.184.216.34/", "without TLS"),
    ("http://example.com/", "without TLS"),
    ("HTTP://EXAMPLE.COM/", "without TLS"),
    ("https://user@example.com/", "user or password"),
    ("https://user:password@example.com/", "user or password"),
    ("https://:password@example.com/", "user or password"),
    ("https://@example.com/", "user or password"),
    ("https://example.com@127.0.0.1/", "user or password"),
    ("ftp://example.com/", "only https"),
    ("file:///etc/passwd", "only https"),
    ("gopher://127.0.0.1:70/", "only https"),
    ("https:\\\\127.0.0.1\\", "backslashes"),
    ("https://exam\tple.com/", "control"),
    ("https://", "empty host"),
];

const ALLOWED: [&str; 15] = [
    "https://example.com/",
    "https://EXAMPLE.com:8443/a?b#c",
    "https://bücher.example/",
    "https://93.184.216.34/",
    "https://0x5db8d822/",
    "https://9.255.255.255/",
    "https://11.0.0.0/",
    "https://100.63.255.255/",
    "https://100.128.0.0/",
    "https://172.15.255.255/",
    "https://172.32.0.0/",
    "https://198.17.255.255/",
    "https://223.255.255.255/",
    "https://[2606:4700::1111]/",
    "https://[::ffff:93.184.216.34]/",
];

fn guard(allow: &[&str]) -> AddressGuard {
    let allow: Vec<String> = allow.iter().map(|entry| (*entry).to_owned()).collect();
    AddressGuard::new(&allow, Arc::new(SystemResolver)).unwrap()
}

#[test]
fn internal_urls_are_refused_in_every_spelling() {
    let guard = guard(&[]);
    for (url, reason) in REFUSED {
        match guard.url(url) {
            Ok(read) => panic!("{url} was taken as {read}"),
            Err(refused) => assert!(refused.to_string().contains(reason), "{url}: {refused}"),
        }
    }
    for url in ALLOWED {
        guard.url(url).unwrap();
    }
}

#[test]
fn named_hosts_are_allowed_and_their_neighbours_are_not() {
    let guard = guard(&["10.1.0.0/16", "127.0.0.1", "Intern.Example", "fd00::/8", "bücher.example"]);
    for url in [
        "https://10.1.2.3/",
        "http://10.1.2.3/",
        "http://127.0.0.1:8080/",
        "http://2130706433/",
        "http://[::ffff:127.0.0.1]/",
        "http://intern.example/",
        "http://INTERN.example./",
        "http://[fd00::1]/",
        "http://xn--bcher-kva.example/",
    ] {
        guard.url(url).unwrap();
    }
    for url in [
        "https://10.2.0.1/",
        "https://127.0.0.2/",
        "http://other.intern.example/",
        "http://intern.example.com/",
        "https://[fc00::1]/",
        "https://[::1]/",
    ] {
        guard.url(url).unwrap_err();
    }
}

#[test]
fn entries_that_mean_something_else_are_refused() {
    for entry in ["", "http://a.example", "a.example:80", "a b", "0x7f.1", "10.0.0.0/33", "a.example/", "[::1]", "*"] {
        let read = AddressGuard::new(&[entry.to_owned()], Arc::new(SystemResolver));
        assert!(matches!(read, Err(AddressRefusal::Allow(_))), "{entry:?}: {read:?}");
    }
}

/// Gives each answer once, then the last one for ever.
struct Scripted {
    answers: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Scripted {
    fn new(answers: &[&[&str]]) -> Arc<Scripted> {
        let read = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        Arc::new(Scripted { answers: answers.iter().map(read).collect(), asked: AtomicUsize::new(0) })
    }
}

impl Resolver for Scripted {
    fn resolve(&self, _host: &str) -> PortFuture<'_, io::Result<Vec<IpAddr>>> {
        let at = self.asked.fetch_add(1, Ordering::SeqCst).min(self.answers.len() - 1);
        Box::pin(std::future::ready(Ok(self.answers[at].clone())))
    }
}

#[tokio::test]
async fn every_address_of_a_name_is_checked() {
    for (answer, expected) in [
        (&["93.184.216.34", "2606:4700::1111"][..], None),
        (&["93.184.216.34", "10.0.0.1"], Some("10.0.0.1")),
        (&["10.0.0.1", "93.184.216.34"], Some("10.0.0.1")),
        (&["::ffff:127.0.0.1"], Some("127.0.0.1")),
        (&["2606:4700::1111", "fe80::1"], Some("fe80::1")),
        (&["169.254.169.254"], Some("169.254.169.254")),
    ] {
        let guard = AddressGuard::new(&[], Scripted::new(&[answer])).unwrap();
        match (guard.addresses("a.example").await, expected) {
            (Ok(addresses), None) => assert_eq!(addresses.len(), answer.len()),
            (Err(AddressRefusal::Inside { address, .. }), Some(expected)) => {
                assert_eq!(address.to_string(), expected)
            }
            (other, _) => panic!("{answer:?}: {other:?}"),
        }
    }
    let guard = AddressGuard::new(&[], Scripted::new(&[&[]])).unwrap();
    assert!(matches!(guard.addresses("a.example").await, Err(AddressRefusal::NoAddress { .. })));
    let guard = AddressGuard::new(&["a.example".to_owned()], Scripted::new(&[&["10.0.0.1"]])).unwrap();
    assert_eq!(guard.addresses("a.example").await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_name_that_becomes_internal_is_refused_at_the_next_request_and_resolved_once_for_each() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&accepted);
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    });
    // The name is allowed at 127.0.0.1 and nowhere else; the server listens on 127.0.0.2 just as well.
    let resolver = Scripted::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let allow = ["127.0.0.1".to_owned()];
    let guard = AddressGuard::new(&allow, Arc::clone(&resolver) as Arc<dyn Resolver>).unwrap();
    let client = client(&guard, Duration::from_secs(5)).unwrap();
    let url = format!("http://rebinding.example:{port}/");
    while_connecting(async {
        assert!(!connected());
        assert_eq!(client.get(&url).send().await.unwrap().status(), 200);
        assert!(connected());
    })
    .await;
    assert_eq!(resolver.asked.load(Ordering::SeqCst), 1);
    while_connecting(async {
        let error = client.get(&url).send().await.unwrap_err();
        assert!(matches!(refused(&error), Some(AddressRefusal::Inside { .. })), "{error:?}");
        assert!(!connected());
    })
    .await;
    assert_eq!((resolver.asked.load(Ordering::SeqCst), accepted.load(Ordering::SeqCst)), (2, 1));
    serving.abort();
}

#[tokio::test]
async fn the_client_follows_no_redirects_by_itself() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 1024]).await;
        let location = "location: http://169.254.169.254/\r\ncontent-length: 0";
        let _ = stream.write_all(format!("HTTP/1.1 302 Found\r\n{location}\r\n\r\n").as_bytes()).await;
    });
    let client = client(&guard(&["127.0.0.1"]), Duration::from_secs(5)).unwrap();
    assert_eq!(client.get(format!("http://{address}/")).send().await.unwrap().status(), 302);
    serving.await.unwrap();
}
