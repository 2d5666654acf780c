//! One POST of JSON to an address the operator named, past the guard: how notifications leave as webhooks.

use crate::builtin::{Post, Posted};
use crate::guard::{self, Guard, Resolver};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use rutter_core::port::tools::Reply;
use std::sync::Arc;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

pub struct GuardedPost {
    resolver: Arc<dyn Resolver>,
}

impl GuardedPost {
    pub fn new(resolver: Arc<dyn Resolver>) -> GuardedPost {
        GuardedPost { resolver }
    }

    async fn send(&self, url: &str, allow: &[String], key: &str, body: Vec<u8>, timeout: Duration) -> Posted {
        let refused = |error: &dyn std::fmt::Display| Posted::NotSent(error.to_string());
        let guard = match Guard::new(allow, Arc::clone(&self.resolver)) {
            Ok(guard) => guard,
            Err(error) => return refused(&error),
        };
        let url = match guard.url(url).and_then(|url| guard.check(&url).map(|()| url)) {
            Ok(url) => url,
            Err(error) => return refused(&error),
        };
        let client = match guard::client(&guard, CONNECT_TIMEOUT) {
            Ok(client) => client,
            Err(error) => return refused(&error),
        };
        let Ok(key) = HeaderValue::from_str(key) else { return refused(&"the key is no header") };
        let request = client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("Idempotency-Key", key)
            .timeout(timeout)
            .body(body);
        match request.send().await {
            Ok(answer) => Posted::Answered(answer.status().as_u16()),
            Err(error) if guard::connected() => Posted::Unanswered(error.without_url().to_string()),
            Err(error) => Posted::NotSent(error.without_url().to_string()),
        }
    }
}

impl std::fmt::Debug for GuardedPost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GuardedPost")
    }
}

impl Post for GuardedPost {
    fn post<'a>(
        &'a self,
        url: &'a str,
        allow: &'a [String],
        key: &'a str,
        body: Vec<u8>,
        timeout: Duration,
    ) -> Reply<'a, Posted> {
        Box::pin(guard::while_connecting(self.send(url, allow, key, body, timeout)))
    }
}
