//! Request smuggling: bytes that two parsers could take for different requests. This server sees at most one.

use crate::security::harbour::Harbour;
use crate::security::routes::counted;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_hides_behind_a_request() {
    let harbour = Harbour::new().await;
    let host = format!("Host: {}", harbour.address);
    let hidden = format!("GET /healthz HTTP/1.1\r\n{host}\r\nX-Hidden: 1\r\n\r\n");
    let head = format!("POST /enter HTTP/1.1\r\n{host}\r\nContent-Type: application/x-www-form-urlencoded\r\n");
    let end = "0\r\n\r\n";
    let length = end.len() + hidden.len();
    let cases = [
        (
            "length, then chunks",
            format!("{head}Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n\r\n{end}{hidden}"),
        ),
        (
            "chunks, then length",
            format!("{head}Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n\r\n{end}{hidden}"),
        ),
        (
            "a short length, then chunks",
            format!("{head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n{end}{hidden}"),
        ),
        (
            "chunks twice",
            format!("{head}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n{end}{hidden}"),
        ),
        (
            "chunks, then something",
            format!("{head}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n{end}{hidden}"),
        ),
        ("something, then chunks", format!("{head}Transfer-Encoding: identity, chunked\r\n\r\n{end}{hidden}")),
        ("not quite chunks", format!("{head}Transfer-Encoding: xchunked\r\n\r\n{end}{hidden}")),
        ("chunks behind a space", format!("{head}Transfer-Encoding : chunked\r\n\r\n{end}{hidden}")),
        (
            "chunks behind a tab",
            format!("{head}Transfer-Encoding:\tchunked\r\nContent-Length: {length}\r\n\r\n{end}{hidden}"),
        ),
        ("chunks on the next line", format!("{head}X: y\r\n Transfer-Encoding: chunked\r\n\r\n{end}{hidden}")),
        ("two lengths", format!("{head}Content-Length: 0\r\nContent-Length: {length}\r\n\r\n{end}{hidden}")),
        ("two lengths in one", format!("{head}Content-Length: 0, {length}\r\n\r\n{hidden}")),
        ("a length with a sign", format!("{head}Content-Length: +0\r\n\r\n{hidden}")),
        ("a length below nothing", format!("{head}Content-Length: -1\r\n\r\n{hidden}")),
        ("a length in hex", format!("{head}Content-Length: 0x0\r\n\r\n{hidden}")),
        ("a length behind a space", format!("{head}Content-Length : 0\r\n\r\n{hidden}")),
        ("a chunk of too many", format!("{head}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n{hidden}")),
        ("a chunk of a sign", format!("{head}Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n{hidden}")),
        ("a chunk without an end", format!("{head}Transfer-Encoding: chunked\r\n\r\n1\r\naX0\r\n\r\n{hidden}")),
        (
            "chunks in the older protocol",
            format!("{}Transfer-Encoding: chunked\r\n\r\n{end}{hidden}", head.replace("1.1", "1.0")),
        ),
        ("a zero in a name", format!("{head}X-\0: y\r\nContent-Length: 0\r\n\r\n{hidden}")),
        ("a zero in a value", format!("{head}X: y\0\r\nContent-Length: 0\r\n\r\n{hidden}")),
        (
            "a return in a value",
            format!("{head}X: y\rTransfer-Encoding: chunked\r\nContent-Length: {length}\r\n\r\n{end}{hidden}"),
        ),
        ("a protocol there is none of", format!("POST /enter HTTP/9.9\r\n{host}\r\nContent-Length: 0\r\n\r\n{hidden}")),
        (
            "an upgrade",
            format!(
                "GET /healthz HTTP/1.1\r\n{host}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            ),
        ),
        ("the newer protocol", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
    ];
    for (what, request) in &cases {
        let answer = harbour.ask(request).await;
        let text = format!("{}\r\n\r\n{}", answer.head, answer.body);
        let answers = text.matches("HTTP/1.").count();
        assert!(answers <= 1 || !text.contains("200 OK"), "{what}: {answers} answers: {text}");
        assert!(
            !text.contains("\r\n\r\nok\n") || *what == "an upgrade",
            "{what}: the hidden request was answered: {text}"
        );
    }
    let plain = format!("POST /enter HTTP/1.1\r\n{host}\r\nContent-Length: 0\r\n\r\n");
    let last = hidden.replace("X-Hidden", "Connection: close\r\nX-Hidden");
    let both = harbour.ask(&format!("{plain}{last}")).await;
    assert!(both.body.contains("HTTP/1.1 200 OK"), "two plain requests are two: {both:?}");
    counted("hidden requests", cases.len() + 1);
}
