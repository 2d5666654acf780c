//! Cross-site request forgery: what a foreign page could make a browser with a session do.

use crate::security::harbour::{AGENT, Harbour, OPERATOR};
use crate::security::routes::{Entry, Papers, all, counted};

/// A request a page could send, and whether the page is ours.
struct Sent {
    what: &'static str,
    headers: Vec<(&'static str, String)>,
    body: String,
    query: String,
    is_ours: bool,
}

fn cases(papers: &Papers, other: &Papers, address: &str) -> Vec<Sent> {
    let form = || ("Content-Type", "application/x-www-form-urlencoded".to_owned());
    let right = format!("csrf={}", papers.csrf);
    let sent =
        |what, headers, body: &str| Sent { what, headers, body: body.to_owned(), query: String::new(), is_ours: false };
    let token = |value: &str| ("X-CSRF-Token", value.to_owned());
    let site = |value: &str| ("Sec-Fetch-Site", value.to_owned());
    let origin = |value: &str| ("Origin", value.to_owned());
    let mut cases = vec![
        sent("nothing", vec![form()], ""),
        sent("an empty one", vec![form()], "csrf="),
        sent("a wrong one", vec![form()], "csrf=0000"),
        sent("one that is cut", vec![form()], &right[..right.len() - 1]),
        sent("one that goes on", vec![form()], &format!("{right}0")),
        sent("another session's", vec![form()], &format!("csrf={}", other.csrf)),
        sent("two", vec![form()], &format!("{right}&csrf=0000")),
        sent("the right one twice", vec![form()], &format!("{right}&{right}")),
        sent("under another name", vec![form()], &right.replace("csrf", "CSRF")),
        sent("the cookie itself", vec![form()], &format!("csrf={}", papers.cookie.split_once('=').unwrap().1)),
        sent("as plain text", vec![("Content-Type", "text/plain".to_owned())], &right),
        sent("as multipart", vec![("Content-Type", "multipart/form-data; boundary=a".to_owned())], &right),
        sent("as JSON", vec![("Content-Type", "application/json".to_owned())], "{}"),
        sent("of no kind", vec![], &right),
        sent("a wrong header beside the right field", vec![form(), token("0000")], &right),
        sent("another session's header", vec![form(), token(&other.csrf)], ""),
        sent("from another site", vec![form(), site("cross-site")], &right),
        sent("from another port", vec![form(), site("same-site")], &right),
        sent("from another page", vec![form(), origin("http://evil.example")], &right),
        sent("from another server here", vec![form(), origin("http://127.0.0.1:1")], &right),
        sent("from a page without a name", vec![form(), origin("null")], &right),
        Sent { query: format!("?{right}"), ..sent("in the address", vec![form()], "") },
    ];
    for (what, headers, body) in [
        ("as a field", vec![form()], right.as_str()),
        ("as a header", vec![form(), token(&papers.csrf)], ""),
        ("as a browser does", vec![form(), site("same-origin"), origin(&format!("http://{address}"))], &right),
    ] {
        cases.push(Sent { is_ours: true, ..sent(what, headers, body) });
    }
    cases
}

#[tokio::test(flavor = "multi_thread")]
async fn only_our_own_pages_change_anything_in_a_session() {
    let harbour = Harbour::new().await;
    let other = Papers::all(&harbour).await;
    let routes = all();
    let unsafe_ones =
        routes.iter().filter(|route| route.method != "GET" && matches!(route.entry, Entry::Browsers | Entry::Both(_)));
    let (mut count, mut left) = (0, 0);
    for route in unsafe_ones {
        let papers = Papers::all(&harbour).await;
        let cookie = papers.cookie.split_once('=').unwrap().1;
        for Sent { what, headers, body, query, is_ours } in cases(&papers, &other, &harbour.address) {
            if is_ours && route.path == "/leave" && harbour.auth.session(cookie).is_none() {
                continue;
            }
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let headers = [&headers[..], &[("Cookie", papers.cookie.as_str())]].concat();
            let path = match route.path.contains('?') {
                true => format!("{}{}", route.path, query.replacen('?', "&", 1)),
                false => format!("{}{query}", route.path),
            };
            let answer = harbour.ask(&harbour.request(&route.method, &path, &headers, &body)).await;
            let is_refused = answer.status == 403 && answer.body.contains("server.origin");
            assert_eq!(is_refused, !is_ours, "{} {path}: {what} {answer:?}", route.method);
            if route.path == "/leave" {
                left += usize::from(harbour.auth.session(cookie).is_none());
                assert_eq!(harbour.auth.session(cookie).is_none(), is_ours, "{what}");
            }
            count += 1;
        }
    }
    assert_eq!(left, 1, "one of ours left");
    counted("forged and own requests", count);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_takes_precedence_over_a_cookie() {
    let harbour = Harbour::new().await;
    let papers = Papers::all(&harbour).await;
    let (agents, _) = harbour.session(AGENT).await;
    let ask = |path: &'static str, bearer: Option<&str>, cookie: Option<&str>| {
        let mut headers = vec![("Accept", "application/json".to_owned())];
        headers.extend(bearer.map(|bearer| ("Authorization", format!("Bearer {bearer}"))));
        headers.extend(cookie.map(|cookie| ("Cookie", cookie.to_owned())));
        let harbour = &harbour;
        async move {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            harbour.get(path, &headers).await
        }
    };
    let operators = Some(papers.cookie.as_str());
    for (path, bearer, cookie, status, name) in [
        ("/api/v1/me", Some(OPERATOR), None, 200, "operator"),
        ("/api/v1/me", None, operators, 200, "operator"),
        ("/api/v1/me", Some(AGENT), operators, 200, "agent"),
        ("/api/v1/me", Some(OPERATOR), Some(agents.as_str()), 200, "operator"),
        ("/api/v1/me", Some("wrong"), operators, 401, "server.unauthorized"),
        ("/api/v1/me", Some(""), operators, 401, "server.unauthorized"),
        ("/api/v1/me", None, Some("rutter_session=wrong"), 401, "server.unauthorized"),
        ("/api/v1/me", None, None, 401, "server.unauthorized"),
        ("/mcp", None, operators, 401, "server.unauthorized"),
        ("/help", Some(OPERATOR), None, 401, "server.unauthorized"),
        ("/help", Some(OPERATOR), operators, 401, "server.unauthorized"),
        ("/help", None, operators, 200, "html"),
    ] {
        let answer = ask(path, bearer, cookie).await;
        assert_eq!(answer.status, status, "{path} {bearer:?} {cookie:?} {answer:?}");
        assert!(answer.body.contains(name), "{path} {bearer:?} {answer:?}");
    }
    let json = [("Content-Type", "application/json"), ("Authorization", &format!("Bearer {OPERATOR}"))];
    let free = harbour.ask(&harbour.request("POST", "/api/v1/plans/check", &json, "{}")).await;
    assert_ne!(free.status, 403, "a program needs no CSRF token: {free:?}");
    counted("tokens beside cookies", 13);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_header_or_field_overrides_the_method() {
    let harbour = Harbour::new().await;
    let papers = Papers::all(&harbour).await;
    let cookie = papers.cookie.split_once('=').unwrap().1;
    let mut cases = 0;
    for name in ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-Method"] {
        for method in ["POST", "DELETE", "PUT"] {
            let headers = [(name, method), ("Cookie", &papers.cookie), ("X-CSRF-Token", &papers.csrf)];
            let answer = harbour.get("/leave", &headers).await;
            assert!(matches!(answer.status, 404 | 405), "{name}: {method} {answer:?}");
            let looked = harbour.get("/api/v1/executions", &headers).await;
            assert_eq!(looked.status, 200, "{name}: {method} {looked:?}");
            assert!(harbour.auth.session(cookie).is_some(), "{name}: {method}");
            cases += 2;
        }
    }
    for path in ["/leave?_method=POST", "/leave?method=post", "/leave?csrf=x&_method=post"] {
        let answer = harbour.get(path, &[("Cookie", &papers.cookie)]).await;
        assert!(matches!(answer.status, 404 | 405), "{path} {answer:?}");
        assert!(harbour.auth.session(cookie).is_some());
        cases += 1;
    }
    counted("methods said otherwise", cases);
}
