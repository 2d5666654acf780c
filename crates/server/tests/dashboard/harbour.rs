//! The pages on a port of their own, for guests the test lets in itself.

use crate::deck::Deck;
use axum::Extension;
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use rutter_core::id::TenantId;
use rutter_server::auth::{Browser, Scope};
use rutter_server::dashboard;
use rutter_server::guest::Guest;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

pub const CSRF: &str = "the-token-of-this-browser";

pub struct Harbour {
    pub link: String,
    browser: Client,
    _closing: DropGuard,
}

impl Harbour {
    /// For somebody who may do everything.
    pub async fn open(deck: &Deck) -> Harbour {
        Harbour::open_for(deck, &Scope::ALL).await
    }

    pub async fn open_for(deck: &Deck, scopes: &[Scope]) -> Harbour {
        let guest = Guest {
            tenant: TenantId::new("default"),
            id: "operator".to_owned(),
            name: "operator".to_owned(),
            scopes: scopes.iter().copied().collect(),
            person: "operator".to_owned(),
            toolsets: BTreeSet::new(),
            is_local: false,
        };
        let pages = dashboard::routes(Arc::clone(&deck.desk))
            .layer(Extension(guest))
            .layer(Extension(Browser { csrf: CSRF.to_owned() }))
            .merge(dashboard::open_routes());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let link = format!("http://{}", listener.local_addr().unwrap());
        let closing = CancellationToken::new();
        let ended = closing.clone();
        tokio::spawn(Arc::clone(&deck.desk).run(closing.clone()));
        tokio::spawn(async move {
            let served = axum::serve(listener, pages);
            tokio::select! { _ = served => {}, () = ended.cancelled() => {} }
        });
        let browser = Client::builder().redirect(Policy::none()).no_proxy().build().unwrap();
        Harbour { link, browser, _closing: closing.drop_guard() }
    }

    pub async fn get(&self, path: &str) -> (StatusCode, String) {
        let response = self.browser.get(format!("{}{path}", self.link)).send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }

    /// A page that must be there.
    pub async fn page(&self, path: &str) -> String {
        let (status, text) = self.get(path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        text
    }

    pub async fn with_cookie(&self, path: &str, cookie: &str) -> String {
        let request = self.browser.get(format!("{}{path}", self.link)).header("cookie", cookie);
        request.send().await.unwrap().text().await.unwrap()
    }

    /// Sends a form as the page would, and says where that leads.
    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> (StatusCode, String) {
        let mut form = vec![("csrf", CSRF)];
        form.extend(fields);
        self.post_exactly(path, &form).await
    }

    pub async fn post_exactly(&self, path: &str, form: &[(&str, &str)]) -> (StatusCode, String) {
        let response = self.browser.post(format!("{}{path}", self.link)).form(form).send().await.unwrap();
        let location = response.headers().get("location").map(|to| to.to_str().unwrap().to_owned());
        let status = response.status();
        match location {
            Some(location) => (status, location),
            None => (status, response.text().await.unwrap()),
        }
    }

    pub async fn raw(&self, path: &str) -> reqwest::Response {
        self.browser.get(format!("{}{path}", self.link)).send().await.unwrap()
    }
}
