//! Sends notifications as webhooks: one POST of JSON to a configured address, through the guard.

use crate::builtin::{WebhookOutcome, WebhookPoster};
use crate::guard::{self, AddressGuard, Resolver};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use rutter_core::port::tools::PortFuture;
use std::sync::Arc;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

pub struct GuardedWebhookPoster {
    resolver: Arc<dyn Resolver>,
}

impl GuardedWebhookPoster {
    pub fn new(resolver: Arc<dyn Resolver>) -> GuardedWebhookPoster {
        GuardedWebhookPoster { resolver }
    }

    async fn send(&self, url: &str, allow: &[String], key: &str, body: Vec<u8>, timeout: Duration) -> WebhookOutcome {
        let refused = |error: &dyn std::fmt::Display| WebhookOutcome::NotSent(error.to_string());
        let guard = match AddressGuard::new(allow, Arc::clone(&self.resolver)) {
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
        let Ok(key) = HeaderValue::from_str(key) else { return refused(&"the key is not a valid header") };
        let request = client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("Idempotency-Key", key)
            .timeout(timeout)
            .body(body);
        match request.send().await {
            Ok(answer) => WebhookOutcome::Answered(answer.status().as_u16()),
            Err(error) if guard::connected() => WebhookOutcome::Unanswered(error.without_url().to_string()),
            Err(error) => WebhookOutcome::NotSent(error.without_url().to_string()),
        }
    }
}

impl std::fmt::Debug for GuardedWebhookPoster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GuardedWebhookPoster")
    }
}

impl WebhookPoster for GuardedWebhookPoster {
    fn post<'a>(
        &'a self,
        url: &'a str,
        allow: &'a [String],
        key: &'a str,
        body: Vec<u8>,
        timeout: Duration,
    ) -> PortFuture<'a, WebhookOutcome> {
        Box::pin(guard::while_connecting(self.send(url, allow, key, body, timeout)))
    }
}
