//! Size limits: each one below, at, and above the limit.

use crate::security::harbour::{AGENT, Harbour, OPERATOR};
use crate::security::routes::{Papers, counted};
use rutter_app::limits::{FORM_BYTES_MAX, HEAD_BYTES_MAX, HEADERS_MAX, MESSAGE_BYTES_MAX, URL_BYTES_MAX};

#[tokio::test(flavor = "multi_thread")]
async fn urls_are_limited() {
    let harbour = Harbour::new().await;
    for (bytes, status) in [(URL_BYTES_MAX - 1, 200), (URL_BYTES_MAX, 200), (URL_BYTES_MAX + 1, 414)] {
        let path = format!("/healthz?{}", "q".repeat(bytes - "/healthz?".len()));
        assert_eq!(harbour.get(&path, &[]).await.status, status, "{bytes}");
    }
    let endless = harbour.get(&format!("/healthz?{}", "q".repeat(1 << 20)), &[]).await;
    assert!(matches!(endless.status, 0 | 414 | 431), "{endless:?}");
    counted("long addresses", 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_are_limited() {
    let harbour = Harbour::new().await;
    let known = "connection".len() + "close".len() + "host".len() + harbour.address.len();
    for (bytes, status) in [(HEAD_BYTES_MAX - 1, 200), (HEAD_BYTES_MAX, 200), (HEAD_BYTES_MAX + 1, 431)] {
        let value = "v".repeat(bytes - known - "x-padding".len());
        assert_eq!(harbour.get("/healthz", &[("X-Padding", &value)]).await.status, status, "{bytes}");
    }
    for (count, status) in [(HEADERS_MAX - 1, 200), (HEADERS_MAX, 200), (HEADERS_MAX + 1, 431)] {
        let names: Vec<String> = (2..count).map(|number| format!("X-{number}")).collect();
        let headers: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
        assert_eq!(harbour.get("/healthz", &headers).await.status, status, "{count} headers");
    }
    let endless = harbour.get("/healthz", &[("X-Padding", &"v".repeat(4 << 20))]).await;
    assert!(matches!(endless.status, 0 | 431), "{endless:?}");
    let bearer = format!("Bearer {}", "t".repeat(60_000));
    assert_eq!(harbour.get("/mcp", &[("Authorization", &bearer)]).await.status, 401);
    counted("large heads", 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_limited() {
    let harbour = Harbour::new().await;
    let bearer = format!("Bearer {AGENT}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    for (bytes, is_too_large) in
        [(MESSAGE_BYTES_MAX - 1, false), (MESSAGE_BYTES_MAX, false), (MESSAGE_BYTES_MAX + 1, true)]
    {
        let body = " ".repeat(bytes);
        let answer = harbour.ask(&harbour.request("POST", "/mcp", &headers, &body)).await;
        assert_eq!(answer.status == 413 || answer.status == 0, is_too_large, "{bytes} {answer:?}");
        let chunked = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\nContent-Type: application/json\r\n\
             Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n{bytes:x}\r\n{body}\r\n0\r\n\r\n",
            harbour.address
        );
        let answer = harbour.ask(&chunked).await;
        assert_eq!(answer.status == 413 || answer.status == 0, is_too_large, "{bytes} in chunks {answer:?}");
    }
    let papers = Papers::all(&harbour).await;
    for (bytes, status) in [(FORM_BYTES_MAX - 1, 303), (FORM_BYTES_MAX, 303), (FORM_BYTES_MAX + 1, 413)] {
        let form = format!("csrf={}&theme=dark&padding=", papers.csrf);
        let form = format!("{form}{}", "p".repeat(bytes - form.len()));
        let answer = harbour.post("/theme", &[("Cookie", &papers.cookie)], &form).await;
        assert_eq!(answer.status, status, "{bytes} {:?}", answer.head);
    }
    let announced = format!(
        "POST /enter HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\nsecret=",
        harbour.address,
        u64::MAX / 2
    );
    let answer = harbour.ask(&announced).await;
    assert!(matches!(answer.status, 400 | 413), "{answer:?}");
    let long = harbour.post("/enter", &[], &format!("secret={}{OPERATOR}", "s".repeat(1 << 20))).await;
    assert!(matches!(long.status, 401 | 413), "{:?}", long.head);
    counted("large bodies", 11);
}
