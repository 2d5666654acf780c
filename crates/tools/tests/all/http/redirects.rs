//! Redirects: none by default, few within the same origin where allowed, never anywhere else.

use crate::http::fixture::*;
use rutter_core::tool::FailureCategory;
use rutter_tools::http::HttpServer;
use serde_json::json;

fn following(base: &str, method: &str, redirects: u8) -> HttpServer {
    let text = format!(
        "[http.shop]\nbase = 'BASE'\nallow = ['127.0.0.1']\n\
         tools.order = {{method = '{method}', path = '/start', redirects = {redirects}}}"
    );
    configured(base, &text)
}

fn redirect(status: u16, location: &str) -> Act {
    Act::Send(answer(&format!("{status} Elsewhere"), &[&format!("location: {location}")], ""))
}

/// Sends `/start` elsewhere, and answers everything else.
async fn redirecting(status: u16, location: &'static str) -> HttpFixture {
    HttpFixture::start(move |seen| match seen {
        Some(seen) if seen.target == "/start" => redirect(status, location),
        _ => Act::Send(json_answer("200 OK", &json!({"ok": true}))),
    })
    .await
}

#[tokio::test]
async fn redirects_are_not_followed_unless_allowed() {
    for status in [301, 302, 303, 307, 308] {
        let fixture = redirecting(status, "/end").await;
        let failure = maybe(call(&following(&fixture.base(), "GET", 0), "order", json!({})).await);
        assert_eq!(failure.category, FailureCategory::Protocol);
        assert_eq!(fixture.effects(), 1);
    }
}

#[tokio::test]
async fn reads_follow_within_the_same_origin() {
    for status in [301, 302, 303, 307, 308] {
        let fixture = redirecting(status, "/end?x=1").await;
        assert_eq!(done(call(&following(&fixture.base(), "GET", 1), "order", json!({})).await), json!({"ok": true}));
        assert_eq!(fixture.last().target, "/end?x=1");
    }
}

#[tokio::test]
async fn a_post_is_repeated_only_where_the_server_asks_for_just_that() {
    for (status, method, body) in [(307, "POST", "{\"a\":1}"), (308, "POST", "{\"a\":1}"), (303, "GET", "")] {
        let fixture = redirecting(status, "/end").await;
        done(call(&following(&fixture.base(), "POST", 1), "order", json!({"a": 1})).await);
        let last = fixture.last();
        assert_eq!((last.method.as_str(), last.target.as_str()), (method, "/end"), "{status}");
        assert_eq!(last.body, body.as_bytes(), "{status}");
    }
    for status in [301, 302] {
        let fixture = redirecting(status, "/end").await;
        maybe(call(&following(&fixture.base(), "POST", 1), "order", json!({"a": 1})).await);
        assert_eq!(fixture.effects(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_result_that_is_missing_elsewhere_does_not_undo_the_post() {
    let fixture = HttpFixture::start(|seen| match seen {
        Some(seen) if seen.target == "/start" => redirect(303, "/end"),
        _ => Act::Send(answer("404 Not Found", &[], "")),
    })
    .await;
    let failure = maybe(call(&following(&fixture.base(), "POST", 1), "order", json!({})).await);
    assert_eq!(failure.category, FailureCategory::NotFound);
}

#[tokio::test]
async fn no_redirect_leads_to_another_origin() {
    let other = HttpFixture::answering(json_answer("200 OK", &json!({"stolen": true}))).await;
    let port = other.address.port();
    let places = [
        format!("http://127.0.0.1:{port}/"),
        format!("//127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://127.0.0.2:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[::ffff:10.0.0.1]/".to_owned(),
        "http://0x7f000001/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "data:text/plain,x".to_owned(),
        "http://".to_owned(),
        "\\\\127.0.0.1\\share".to_owned(),
    ];
    for place in places {
        let location = place.clone();
        let fixture = HttpFixture::start(move |_| redirect(307, &location)).await;
        maybe(call(&following(&fixture.base(), "POST", 3), "order", json!({})).await);
        assert_eq!((fixture.effects(), other.connections()), (1, 0), "{place}");
    }
}

#[tokio::test]
async fn a_chain_within_the_origin_that_then_leaves_it_stops_there() {
    let other = HttpFixture::answering("").await;
    let outside = format!("http://localhost:{}/", other.address.port());
    let fixture = HttpFixture::start(move |seen| match seen.map(|seen| seen.target.as_str()) {
        Some("/start") => redirect(307, "/second"),
        _ => redirect(307, &outside),
    })
    .await;
    maybe(call(&following(&fixture.base(), "POST", 3), "order", json!({})).await);
    assert_eq!((fixture.effects(), other.connections()), (2, 0));
}

#[tokio::test]
async fn a_redirect_with_a_password_is_not_followed() {
    let fixture = HttpFixture::start(|seen| match seen {
        Some(seen) => {
            let host = seen.header("host").unwrap().to_owned();
            redirect(307, &format!("http://user:password@{host}/end"))
        }
        None => Act::Send(Vec::new()),
    })
    .await;
    maybe(call(&following(&fixture.base(), "POST", 3), "order", json!({})).await);
    assert_eq!(fixture.effects(), 1);
}

#[tokio::test]
async fn a_redirect_loop_ends() {
    let fixture = HttpFixture::start(|_| redirect(307, "/start")).await;
    maybe(call(&following(&fixture.base(), "POST", 3), "order", json!({})).await);
    assert_eq!(fixture.effects(), 4);
}
