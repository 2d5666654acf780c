//! Errors around a message rather than in it: methods, headers, framing, and connections that end too early.

use crate::hostile::wire::{Era, Line, exchange, introduction, with_headers};
use serde_json::json;

pub struct Odd {
    pub category: &'static str,
    pub bytes: Vec<u8>,
    /// The client closes the connection after this, so no response is expected.
    pub hangs_up: bool,
    /// It may be valid.
    pub may_pass: bool,
}

/// `line` has a session.
pub fn all(line: &Line) -> Vec<Odd> {
    let mut odd = Vec::new();
    odd.extend(methods(line));
    odd.extend(headers(line));
    odd.extend(floods(line));
    odd.extend(framing(line));
    odd.extend(halves(line));
    odd
}

fn whole(category: &'static str, bytes: Vec<u8>) -> Odd {
    Odd { category, bytes, hangs_up: false, may_pass: false }
}

fn list(era: Era) -> Vec<u8> {
    era.request(json!(1), "tools/list", json!({})).to_string().into_bytes()
}

fn methods(line: &Line) -> Vec<Odd> {
    let mut odd = Vec::new();
    let stranger = Line { session: Some("nobody".to_owned()), ..line.clone() };
    for method in ["GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "BREW", "post"] {
        for (era, line) in [(Era::Modern, line), (Era::Legacy, &stranger)] {
            let body = list(era);
            let bytes = with_headers(&format!("{method} /mcp HTTP/1.1"), &line.headers(era, &body), &body);
            // Ending a session that does not exist succeeds.
            odd.push(Odd { may_pass: method == "DELETE", ..whole("method", bytes) });
        }
    }
    for path in ["/", "/mcp/", "/mcp/../mcp", "//mcp", "/MCP", "/mcp?toolset=nonsense", "/ask/../mcp", "*", "mcp"] {
        let body = list(Era::Modern);
        let first = format!("POST {path} HTTP/1.1");
        odd.push(whole("path", with_headers(&first, &line.headers(Era::Modern, &body), &body)));
    }
    odd
}

/// One header is changed or missing.
fn headers(line: &Line) -> Vec<Odd> {
    let legacy = Line { session: Some("nobody".to_owned()), ..line.clone() };
    let long = "s".repeat(10_000);
    let changes: [(Era, &str, &[Option<&str>]); 10] = [
        (
            Era::Modern,
            "Content-Type",
            &[None, Some("text/plain"), Some("multipart/form-data"), Some(""), Some("\u{e4}")],
        ),
        (
            Era::Modern,
            "Accept",
            &[None, Some("text/html"), Some("application/json"), Some("text/event-stream"), Some("")],
        ),
        (Era::Modern, "Authorization", &[None, Some("Bearer"), Some("Bearer x"), Some("Basic eDp4"), Some("\u{e4}")]),
        (Era::Modern, "Host", &[None, Some("example.com"), Some(""), Some("127.0.0.1.example.com")]),
        (Era::Modern, "Mcp-Method", &[None, Some("tools/call"), Some(""), Some("TOOLS/LIST")]),
        (
            Era::Modern,
            "MCP-Protocol-Version",
            &[None, Some("2025-11-25"), Some("1999-01-01"), Some(""), Some("latest")],
        ),
        (Era::Legacy, "Mcp-Session-Id", &[None, Some("nobody"), Some(""), Some(&long), Some("\u{e4}")]),
        (Era::Legacy, "MCP-Protocol-Version", &[Some("1999-01-01"), Some("")]),
        (Era::Modern, "Origin", &[Some("http://example.com"), Some("null"), Some("nonsense")]),
        (Era::Modern, "Content-Encoding", &[Some("gzip")]),
    ];
    let mut odd = Vec::new();
    for (era, name, values) in changes {
        let line = if era == Era::Legacy { &legacy } else { line };
        for value in values {
            let body = list(era);
            let mut headers = line.headers(era, &body);
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
            let bytes = with_headers("POST /mcp HTTP/1.1", &headers, &body);
            odd.push(Odd { may_pass: name == "Content-Encoding", ..whole("headers", bytes) });
        }
    }
    let call = Era::Modern.request(json!(1), "tools/call", json!({ "name": "status", "arguments": {} })).to_string();
    for name in [None, Some("save_plan"), Some(""), Some("=?base64?!!!?=")] {
        let mut headers = line.headers(Era::Modern, call.as_bytes());
        headers.retain(|(known, _)| known != "Mcp-Name");
        headers.extend(name.map(|name| ("Mcp-Name".to_owned(), name.to_owned())));
        odd.push(whole("headers", with_headers("POST /mcp HTTP/1.1", &headers, call.as_bytes())));
    }
    // A session is not valid together with another, nor may a client initialize with both versions.
    let mut begin = introduction(json!(1));
    begin["params"]["protocolVersion"] = json!("2025-06-18");
    let body = begin.to_string().into_bytes();
    let mut headers = line.headers(Era::Modern, &body);
    headers.push(("Mcp-Session-Id".to_owned(), "nobody".to_owned()));
    odd.push(whole("headers", with_headers("POST /mcp HTTP/1.1", &headers, &body)));
    odd
}

fn floods(line: &Line) -> Vec<Odd> {
    let body = list(Era::Modern);
    let plain = line.headers(Era::Modern, &body);
    let flood = |count: usize, bytes: usize| {
        let more = (0..count).map(|number| (format!("X-Flood-{number}"), "f".repeat(bytes)));
        let headers: Vec<_> = plain.iter().cloned().chain(more).collect();
        whole("flood", with_headers("POST /mcp HTTP/1.1", &headers, &body))
    };
    let path = format!("POST /mcp?{} HTTP/1.1", "q".repeat(100_000));
    vec![
        flood(200, 1),
        flood(2_000, 100),
        flood(1, 1_000_000),
        flood(90, 10_000),
        whole("flood", with_headers(&path, &plain, &body)),
        Odd { may_pass: true, ..flood(50, 100) },
    ]
}

fn framing(line: &Line) -> Vec<Odd> {
    let body = String::from_utf8(list(Era::Modern)).unwrap();
    let headers: String =
        line.headers(Era::Modern, body.as_bytes()).iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("POST /mcp HTTP/1.1\r\n{headers}");
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    let length = body.len();
    let texts = [
        format!("{chunked}zz\r\n{body}\r\n0\r\n\r\n"),
        format!("{chunked}-5\r\n{body}\r\n0\r\n\r\n"),
        format!("{chunked}ffffffffffffffffff\r\n{body}\r\n"),
        format!("{chunked}{length:x}\r\n{body}XX0\r\n\r\n"),
        format!("{chunked}5\r\n{body}\r\n0\r\n\r\n"),
        format!("{head}Content-Length: -1\r\n\r\n{body}"),
        format!("{head}Content-Length: 99999999999999999999\r\n\r\n{body}"),
        format!("{head}Content-Length: ten\r\n\r\n{body}"),
        format!("{head}Content-Length: {length}\r\nContent-Length: 1\r\n\r\n{body}"),
        format!("{head}Content-Length: 3\r\n\r\n{body}"),
        format!("{head}Content-Length: 0\r\n\r\n"),
        format!("{head}Transfer-Encoding: gzip, nonsense\r\n\r\n{body}"),
        format!("POST /mcp HTTP/9.9\r\n{headers}\r\n"),
        format!("POST /mcp\r\n{headers}\r\n"),
        format!("POST  /mcp  HTTP/1.1\r\n{headers}\r\n"),
        format!("{head}No colon here\r\n\r\n{body}"),
        format!("{head}X-Nul: a\0b\r\n\r\n{body}"),
        format!("{head} X-Folded: y\r\n\r\n{body}"),
        "\r\n\r\n\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense nonsense nonsense".to_owned(),
        "\0\0\0\0\0\0\0\0\r\n\r\n".to_owned(),
        format!("{body}\r\n\r\n"),
    ];
    let mut odd: Vec<Odd> =
        texts.into_iter().map(|text| Odd { hangs_up: true, ..whole("framing", text.into_bytes()) }).collect();
    let fine = format!("{chunked}{length:x};ext=1\r\n{body}\r\n0\r\nTrailer: x\r\n\r\n").into_bytes();
    odd.push(Odd { may_pass: true, ..whole("framing", fine) });
    odd
}

/// Truncated requests: in the first line, in a header, in the body.
fn halves(line: &Line) -> Vec<Odd> {
    let body = list(Era::Modern);
    let bytes = with_headers("POST /mcp HTTP/1.1", &line.headers(Era::Modern, &body), &body);
    let start = bytes.len() - body.len();
    let ends = [0, 1, 10, 40, start / 2, start - 1, start, start + 1, bytes.len() - 1];
    ends.into_iter().map(|end| Odd { hangs_up: true, ..whole("half", bytes[..end].to_vec()) }).collect()
}

/// The result: a status, or a closed connection.
pub fn outcome(line: &Line, odd: &Odd) -> String {
    let text = || String::from_utf8_lossy(&odd.bytes[..odd.bytes.len().min(400)]).into_owned();
    let Some(reply) = exchange(&line.address, &odd.bytes, odd.hangs_up) else {
        assert!(odd.hangs_up || odd.category == "flood", "closed without an answer: {}", text());
        return "closed".to_owned();
    };
    let is_refused = (400..500).contains(&reply.status);
    assert!(is_refused || (odd.may_pass && reply.status < 300), "{reply:?} to {}", text());
    if is_refused { "4xx".to_owned() } else { format!("{}xx", reply.status / 100) }
}
