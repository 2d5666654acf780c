//! DNS rebinding and foreign pages: which hosts and origins each route accepts.

use crate::security::harbour::{Harbour, NAMED};
use crate::security::routes::{Papers, all, counted, is_turned_away};

/// Headers, and whether they are accepted.
fn combinations(address: &str) -> Vec<(Vec<(&'static str, String)>, bool)> {
    let port = address.rsplit(':').next().unwrap();
    let (local, six) = (format!("localhost:{port}"), format!("[::1]:{port}"));
    let host = |name: &str| vec![("Host", name.to_owned())];
    let from = |origin: &str| vec![("Host", address.to_owned()), ("Origin", origin.to_owned())];
    let both = |name: &str, origin: &str| vec![("Host", name.to_owned()), ("Origin", origin.to_owned())];
    let mut cases = Vec::new();
    for headers in [
        host(address),
        host(&local),
        host(&local.to_uppercase()),
        host(&six),
        host(NAMED),
        from(&format!("http://{address}")),
        both(&local, &format!("http://{local}")),
        both(NAMED, &format!("https://{NAMED}")),
        from(&format!("https://{NAMED}")),
    ] {
        cases.push((headers, true));
    }
    for headers in [
        host("evil.example"),
        host(&format!("evil.example:{port}")),
        host("127.0.0.1.evil.example"),
        host(&format!("localhost.:{port}")),
        host(&format!("127.0.0.1.:{port}")),
        host(&format!("{NAMED}.")),
        host(&format!("operator@127.0.0.1:{port}")),
        host(&format!("0.0.0.0:{port}")),
        host(&format!("127.1:{port}")),
        host(&format!("2130706433:{port}")),
        host(&format!("[::ffff:127.0.0.1]:{port}")),
        host("localhost:http"),
        host(""),
        vec![("Host", address.to_owned()), ("Host", address.to_owned())],
        vec![("Host", "evil.example".to_owned()), ("Host", address.to_owned())],
        from("null"),
        from(""),
        from("http://evil.example"),
        from(&format!("http://evil.example:{port}")),
        from("http://127.0.0.1:1"),
        from("http://127.0.0.1"),
        from(&format!("http://localhost:{port}")),
        from(&format!("http://localhost.:{port}")),
        from(&format!("http://{address}.evil.example")),
        from(&format!("http://evil.example/{address}")),
        from(&format!("http://operator@{address}")),
        from("file://"),
        from("chrome-extension://abcdefghijklmnop"),
        from(&format!("https://{NAMED}:8443")),
        from(&format!("https://sub.{NAMED}")),
        vec![
            ("Host", address.to_owned()),
            ("Origin", format!("http://{address}")),
            ("Origin", "http://evil.example".to_owned()),
        ],
    ] {
        cases.push((headers, false));
    }
    cases
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_accepts_only_our_hosts_and_origins() {
    let harbour = Harbour::new().await;
    let (routes, combinations) = (all(), combinations(&harbour.address));
    assert!(combinations.len() >= 24);
    let mut cases = 0;
    for (headers, is_good) in &combinations {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        // Signing out ends a session, so each case gets new credentials.
        let papers = Papers::all(&harbour).await;
        let asked = routes.iter().map(|route| {
            let request = papers.request(&harbour, route, &headers);
            let harbour = &harbour;
            async move { (route, harbour.ask(&request).await) }
        });
        for (route, answer) in futures::future::join_all(asked).await {
            assert_eq!(is_turned_away(&answer), !is_good, "{route:?} {headers:?} {answer:?}");
            assert!(*is_good || answer.header("set-cookie").is_none(), "{route:?} {headers:?}");
            let kind = answer.header("content-type").unwrap_or_default();
            let is_problem = kind.starts_with("application/problem+json");
            let is_told = *is_good || answer.body.is_empty() || is_problem == route.path.starts_with("/api/");
            assert!(is_told, "{route:?} {answer:?}");
            cases += 1;
        }
        let cookie = papers.cookie.split_once('=').unwrap().1;
        assert_eq!(harbour.auth.session(cookie).is_some(), !is_good, "{headers:?}: only a good one left");
    }
    counted("hosts and origins on routes", cases);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_host_or_with_contradicting_hosts_is_refused() {
    let harbour = Harbour::new().await;
    let address = &harbour.address;
    let cases = [
        "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.0\r\n\r\n".to_owned(),
        format!("GET http://evil.example/healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"),
        format!("GET http://{address}/healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"),
        format!("CONNECT evil.example:443 HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"),
    ];
    for request in &cases {
        let answer = harbour.ask(request).await;
        assert!((400..500).contains(&answer.status), "{request} {answer:?}");
    }
    let whole = format!("GET http://{address}/healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    assert_eq!(harbour.ask(&whole).await.status, 200, "an absolute target is allowed");
    counted("targets and hosts", cases.len() + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_has_security_headers() {
    let harbour = Harbour::new().await;
    let papers = Papers::all(&harbour).await;
    let routes = all();
    for route in routes.iter().filter(|route| route.path != "/leave") {
        for request in [
            papers.request(&harbour, route, &[]),
            papers.request(&harbour, route, &[("Host", "evil.example")]),
            harbour.request(&route.method, &route.path, &[], ""),
        ] {
            let answer = harbour.ask(&request).await;
            let policy = answer.header("content-security-policy").unwrap_or_default();
            assert!(policy.contains("frame-ancestors 'none'"), "{request} {answer:?}");
            assert!(!policy.contains("unsafe-eval") && !policy.contains("*"), "{policy}");
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{request}");
            assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{request}");
            assert!(answer.header("referrer-policy").is_some(), "{request}");
            assert_eq!(answer.header("access-control-allow-origin"), None, "{request}");
            assert_eq!(answer.header("server"), None, "{request}");
        }
    }
    counted("answers with cautions", 3 * (routes.len() - 1));
}
