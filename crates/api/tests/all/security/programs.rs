//! No route accepts a program to run: `command`, `args`, `env` and `transport` are posted everywhere.

use crate::security::harbour::{Harbour, OPERATOR};
use crate::security::routes::{Entry, Papers, all, counted};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn no_request_starts_a_program() {
    let harbour = Harbour::new().await;
    let place = tempfile::tempdir().unwrap();
    let mark = place.path().join("started");
    let touch = format!("touch {}", mark.display());
    let server = json!({ "command": "/bin/sh", "args": ["-c", touch], "env": { "PATH": "/usr/bin:/bin" },
        "transport": "stdio" });
    let bodies = [
        server.clone(),
        json!({ "name": "evil", "server": server }),
        json!({ "mcpServers": { "evil": server } }),
        json!({ "servers": { "evil": server }, "tool": "evil.run", "arguments": server }),
        json!({ "url": "http://127.0.0.1:1/", "config": server }),
    ];
    let papers = Papers::all(&harbour).await;
    let bearer = format!("Bearer {OPERATOR}");
    let mut cases = 0;
    for route in all() {
        for body in &bodies {
            let mut headers =
                vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
            match route.entry {
                Entry::Browsers => {
                    headers.extend([("Cookie", papers.cookie.as_str()), ("X-CSRF-Token", papers.csrf.as_str())]);
                }
                _ => headers.push(("Authorization", bearer.as_str())),
            }
            if route.path == "/leave" {
                continue;
            }
            for method in ["POST", "PUT", "PATCH"] {
                let request = harbour.request(method, &route.path, &headers, &body.to_string());
                let answer = harbour.ask(&request).await;
                assert!((400..500).contains(&answer.status), "{method} {route:?} {answer:?}");
                cases += 1;
            }
        }
    }
    assert!(!mark.exists(), "a program was started");
    counted("programs posted", cases);
}
