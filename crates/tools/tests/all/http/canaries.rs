//! Secrets that servers echo, in every form: in no outcome, message or debug text.

use crate::http::fixture::*;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rutter_core::tool::CallOutcome;
use rutter_tools::connector::Connector;
use rutter_tools::http::HttpServer;
use rutter_tools::registry::SecretResolver;
use rutter_tools::secret::SecretVault;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const TOKEN: &str = "canary/of \"the\" mine+0815";
const PASSWORD: &str = "second-canary\\with=signs?";

const TEXT: &str = r#"
    [http.shop]
    base = "BASE"
    allow = ["127.0.0.1"]
    headers = { Authorization = "Bearer ${secret:token}" }
    [http.shop.tools.order]
    method = "POST"
    path = "/orders"
    query = { appid = "${secret:token}" }
    [http.shop.tools.find]
    path = "/orders/{password}"
    headers = { X-Line = "{password}" }
    input = { properties = { password = {} } }
    [secrets]
    token = { env = "TOKEN" }
    password = { env = "PASSWORD" }
    bad = { env = "BAD" }
"#;

fn set_up(base: &str, text: &str) -> (HttpServer, Arc<SecretVault>) {
    let config = config(base, text).unwrap();
    let lookup = |name: &str| match name {
        "TOKEN" => Some(TOKEN.to_owned()),
        "PASSWORD" => Some(PASSWORD.to_owned()),
        "BAD" => Some(format!("{TOKEN}\n{PASSWORD}")),
        _ => None,
    };
    let vault = Arc::new(SecretVault::new(config.secrets.clone(), Arc::new(lookup)));
    (with_vault(&config, Arc::clone(&vault)).unwrap(), vault)
}

/// Every way a secret is likely to be written.
fn forms() -> Vec<String> {
    let forms = |secret: &str| {
        let json = Value::from(secret).to_string();
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        [
            secret.to_owned(),
            BASE64_STANDARD.encode(secret),
            BASE64_STANDARD.encode(format!("user:{secret}")),
            BASE64_URL_SAFE.encode(format!("{secret}:")),
            utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string(),
            json[1..json.len() - 1].to_owned(),
            hex,
        ]
    };
    forms(TOKEN).into_iter().chain(forms(PASSWORD)).collect()
}

fn shows_nothing(visible: &str) {
    for form in forms() {
        assert!(!visible.contains(&form), "{form} is in {visible}");
    }
}

#[tokio::test]
async fn secrets_are_sent_and_shown_nowhere() {
    let next = Arc::new(Mutex::new(Vec::new()));
    let script = Arc::clone(&next);
    let fixture = HttpFixture::start(move |_| Act::Send(script.lock().unwrap().clone())).await;
    let (server, vault) = set_up(&fixture.base(), TEXT);
    for form in forms() {
        for (status, content_type, body) in [
            ("200 OK", "application/json", json!({"echo": form, "list": [form], &form: 1}).to_string()),
            ("200 OK", "text/plain", format!("you sent {form}, thanks")),
            ("400 Bad Request", "application/json", json!({"detail": format!("bad: {form}")}).to_string()),
            ("500 Oops", "text/plain", format!("{}{form}", "x".repeat(290))),
            ("401 No", "text/plain", form.clone()),
        ] {
            *next.lock().unwrap() = answer(status, &[&format!("content-type: {content_type}")], body);
            let parameters = vault.fill(&json!({"password": {"secret": "password"}})).await.unwrap();
            let request = request("order", parameters);
            shows_nothing(&format!("{request:?}"));
            let outcome = server.call(request).await;
            let seen = fixture.last();
            assert_eq!(seen.header("authorization"), Some(&*format!("Bearer {TOKEN}")));
            assert_eq!(seen.json()["password"], PASSWORD);
            assert!(seen.target.starts_with("/orders?appid=canary%2Fof%20%22"), "{}", seen.target);
            // Messages are cut, so they must be clean before anyone else sees them.
            if !matches!(outcome, CallOutcome::Done { .. }) {
                shows_nothing(&format!("{outcome:?}"));
                assert!(!format!("{outcome:?}").contains("canary"), "{outcome:?}");
            }
            let outcome = vault.redactor().outcome(outcome);
            shows_nothing(&format!("{outcome:?} {server:?} {vault:?} {:?}", vault.redactor()));
            if let CallOutcome::Done { result, .. } = &outcome {
                shows_nothing(&result.to_string());
            }
        }
    }
    assert_eq!(fixture.effects(), forms().len() * 5);
}

#[tokio::test]
async fn a_connection_that_fails_shows_no_secret() {
    let fixture = HttpFixture::answering("").await;
    let (server, vault) = set_up(&fixture.base(), TEXT);
    let parameters = vault.fill(&json!({"password": {"secret": "password"}})).await.unwrap();
    shows_nothing(&format!("{:?}", maybe(call(&server, "order", parameters).await)));
    let base = fixture.base();
    drop(fixture);
    let (server, vault) = set_up(&base, TEXT);
    let parameters = vault.fill(&json!({"password": {"secret": "password"}})).await.unwrap();
    let outcome = call(&server, "order", parameters).await;
    shows_nothing(&format!("{outcome:?} {:?}", server.state()));
}

#[tokio::test]
async fn a_secret_that_cannot_be_sent_is_refused_without_being_shown() {
    let fixture = HttpFixture::answering("").await;
    let (server, _) = set_up(&fixture.base(), &TEXT.replace("Bearer ${secret:token}", "${secret:bad}"));
    let failure = not_done(call(&server, "order", json!({})).await);
    assert!(failure.message.contains("authorization"), "{}", failure.message);
    shows_nothing(&format!("{failure:?}"));
    assert_eq!(fixture.connections(), 0);
}
