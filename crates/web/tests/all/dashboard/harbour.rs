//! The pages on their own port, with a principal set by the test.

use axum::Extension;
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use rutter_app::auth::{AccessScope, BrowserContext};
use rutter_app::principal::{Credential, Principal};
use rutter_core::id::TenantId;
use rutter_testkit::server::fixture::ServerFixture;
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
    /// With every scope.
    pub async fn open(deck: &ServerFixture) -> Harbour {
        Harbour::open_for(deck, &AccessScope::ALL).await
    }

    pub async fn open_for(deck: &ServerFixture, scopes: &[AccessScope]) -> Harbour {
        let scopes = scopes.iter().copied().collect();
        let credential = Credential::Token { name: "operator".to_owned() };
        let principal = Principal::new(TenantId::new("default"), "operator", scopes, credential);
        let pages = rutter_web::routes(Arc::clone(&deck.app))
            .layer(Extension(principal))
            .layer(Extension(BrowserContext { csrf: CSRF.to_owned() }))
            .merge(rutter_web::open_routes());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let link = format!("http://{}", listener.local_addr().unwrap());
        let closing = CancellationToken::new();
        let ended = closing.clone();
        tokio::spawn(Arc::clone(&deck.app).run(closing.clone()));
        tokio::spawn(async move {
            let served = axum::serve(listener, pages);
            tokio::select! { _ = served => {}, () = ended.cancelled() => {} }
        });
        let browser = rutter_tools::tls::client_builder().redirect(Policy::none()).no_proxy().build().unwrap();
        Harbour { link, browser, _closing: closing.drop_guard() }
    }

    pub async fn get(&self, path: &str) -> (StatusCode, String) {
        let response = self.browser.get(format!("{}{path}", self.link)).send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }

    /// A page that must exist.
    pub async fn page(&self, path: &str) -> String {
        let (status, text) = self.get(path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        text
    }

    pub async fn with_cookie(&self, path: &str, cookie: &str) -> String {
        let request = self.browser.get(format!("{}{path}", self.link)).header("cookie", cookie);
        request.send().await.unwrap().text().await.unwrap()
    }

    /// Submits a form as the page would; returns the redirect or the body.
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
