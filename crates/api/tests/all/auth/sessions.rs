//! Browser sessions: how they start, how long they last, and what their pages may do.

use crate::security::harbour::{AGENT, Harbour, NAMED, OPERATOR, owner, tokens};
use rutter_app::auth::session::{AGE_MAX, IDLE_MAX, LINK_AGE_MAX};
use rutter_app::auth::{AccessScope, AccessToken};
use rutter_app::principal::{Principal, PrincipalRole};
use rutter_core::time::Millis;

const PAGE: [(&str, &str); 1] = [("Accept", "text/html")];

async fn is_in(harbour: &Harbour, cookie: &str) -> bool {
    let page = harbour.get("/help", &[PAGE[0], ("Cookie", cookie)]).await;
    assert!(page.status == 200 || page.status == 303, "{page:?}");
    page.status == 200
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_signs_one_browser_in_once_and_a_get_does_not_use_it() {
    let harbour = Harbour::new().await;
    let code = harbour.auth.create_sign_in_link(&owner()).await.unwrap();
    for _ in 0..3 {
        let answer = harbour.get(&format!("/enter?code={code}&next=/journal"), &PAGE).await;
        assert_eq!((answer.status, answer.cookie()), (200, None));
        assert!(answer.body.contains("method=\"post\"") && answer.body.contains(&code));
    }
    let form = format!("code={code}&next=/journal");
    let entered = harbour.post("/enter", &[], &form).await;
    assert_eq!((entered.status, entered.header("location")), (303, Some("/journal")));
    let set = entered.header("set-cookie").unwrap();
    for part in ["rutter_session=", "HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"] {
        assert!(set.contains(part), "{part}: {set}");
    }
    assert!(!set.contains("Secure"), "it came without TLS");
    assert!(is_in(&harbour, &entered.cookie().unwrap()).await);
    let again = harbour.post("/enter", &[], &form).await;
    assert_eq!((again.status, again.cookie()), (401, None));
    assert!(again.body.contains("rutter open"), "{}", again.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_browsers_that_use_one_link_at_once_one_is_signed_in() {
    let harbour = Harbour::new().await;
    let code = harbour.auth.create_sign_in_link(&owner()).await.unwrap();
    let form = format!("code={code}");
    let all = futures::future::join_all((0..20).map(|_| harbour.post("/enter", &[], &form))).await;
    assert_eq!(all.iter().filter(|answer| answer.status == 303).count(), 1);
    assert_eq!(all.iter().filter(|answer| answer.cookie().is_some()).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_valid_for_ten_minutes_also_across_a_restart() {
    let harbour = Harbour::new().await;
    let (early, late) = (
        harbour.auth.create_sign_in_link(&owner()).await.unwrap(),
        harbour.auth.create_sign_in_link(&owner()).await.unwrap(),
    );
    harbour.time.pass(Millis(LINK_AGE_MAX.0 - 1));
    let harbour = harbour.restarted(tokens()).await;
    assert_eq!(harbour.post("/enter", &[], &format!("code={early}")).await.status, 303);
    harbour.time.pass(Millis(1));
    assert_eq!(harbour.post("/enter", &[], &format!("code={late}")).await.status, 401);
    let agent = Principal { scopes: [AccessScope::Read, AccessScope::Operate].into(), ..owner() };
    assert_eq!(harbour.auth.create_sign_in_link(&agent).await.unwrap_err().code, "server.not_allowed");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_do_not_pile_up() {
    let harbour = Harbour::new().await;
    for _ in 0..120 {
        harbour.auth.create_sign_in_link(&owner()).await.unwrap();
    }
    let last = harbour.auth.create_sign_in_link(&owner()).await.unwrap();
    let page = rutter_core::port::query::Pagination::first(1_000);
    let kind = rutter_core::port::register::RegisterKind::Link;
    let stored = harbour.deck.app.register.list(&crate::security::harbour::tenant(), kind, page).await.unwrap();
    assert!(stored.items.len() <= 51, "{}", stored.items.len());
    assert_eq!(harbour.post("/enter", &[], &format!("code={last}")).await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_when_idle_or_after_twelve_hours() {
    let harbour = Harbour::new().await;
    let (idle, _) = harbour.session(OPERATOR).await;
    let (busy, _) = harbour.session(OPERATOR).await;
    harbour.time.pass(Millis(IDLE_MAX.0 - 1));
    assert!(is_in(&harbour, &busy).await);
    harbour.time.pass(Millis(1));
    assert!(!is_in(&harbour, &idle).await, "idle for half an hour");
    let mut passed = IDLE_MAX.0;
    while passed + IDLE_MAX.0 / 2 < AGE_MAX.0 {
        harbour.time.pass(Millis(IDLE_MAX.0 / 2));
        passed += IDLE_MAX.0 / 2;
        assert!(is_in(&harbour, &busy).await, "{passed}");
    }
    harbour.time.pass(Millis(AGE_MAX.0 - passed - 1));
    assert!(is_in(&harbour, &busy).await);
    harbour.time.pass(Millis(1));
    assert!(!is_in(&harbour, &busy).await, "twelve hours");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_survives_a_restart_and_ends_at_sign_out() {
    let harbour = Harbour::new().await;
    let (cookie, csrf) = harbour.session(OPERATOR).await;
    let (other, _) = harbour.session(OPERATOR).await;
    let harbour = harbour.restarted(tokens()).await;
    assert!(is_in(&harbour, &cookie).await);
    let left = harbour.post("/leave", &[("Cookie", &cookie)], &format!("csrf={csrf}")).await;
    assert_eq!((left.status, left.header("location")), (303, Some("/enter")));
    assert!(left.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert!(!is_in(&harbour, &cookie).await);
    let harbour = harbour.restarted(tokens()).await;
    assert!(!is_in(&harbour, &cookie).await, "it stays ended");
    assert!(is_in(&harbour, &other).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_with_the_key_or_token_that_started_it() {
    let harbour = Harbour::new().await;
    let (view, secret) = harbour.key("laptop", &[AccessScope::Read]).await;
    let (by_key, _) = harbour.session(&secret).await;
    let (by_token, _) = harbour.session(OPERATOR).await;
    let (by_agent, _) = harbour.session(AGENT).await;
    assert!(is_in(&harbour, &by_key).await && is_in(&harbour, &by_token).await);
    harbour.auth.revoke(&owner(), &view.id).await.unwrap();
    assert!(!is_in(&harbour, &by_key).await);
    let replaced = vec![
        AccessToken::new("operator", PrincipalRole::Operator, "another-token-of-enough-characters"),
        AccessToken::new("agent", PrincipalRole::Agent, AGENT),
    ];
    let harbour = harbour.restarted(replaced).await;
    assert!(!is_in(&harbour, &by_token).await, "the token has changed");
    assert!(is_in(&harbour, &by_agent).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_without_a_session_is_sent_to_sign_in_and_back() {
    let harbour = Harbour::new().await;
    let sent = harbour.get("/executions?status=failed&text=a%20b", &PAGE).await;
    let location = sent.header("location").unwrap();
    assert_eq!((sent.status, location), (303, "/enter?next=/executions%3Fstatus%3Dfailed%26text%3Da%2520b"));
    let entrance = harbour.get(location, &PAGE).await;
    let stored = entrance.body.replace("&#38;", "&amp;");
    assert!(stored.contains("value=\"/executions?status=failed&amp;text=a%20b\""), "{stored}");
    let followed = harbour.get("/journal", &[PAGE[0], ("Sec-Fetch-Site", "cross-site")]).await;
    assert!(followed.status == 200 && followed.body.contains("url=/journal"), "the browser reloads by itself");
    assert!(!followed.body.contains("<main"), "and shows nothing yet: {}", followed.body);
    let stream = harbour.get("/journal", &[("Accept", "text/event-stream")]).await;
    assert_eq!(stream.status, 401, "only pages redirect to sign-in");
    for next in ["//evil.example", "https://evil.example", "/\\evil.example", "/%0d%0aSet-Cookie:%20a=b"] {
        let form = format!("secret={OPERATOR}&next={next}");
        let entered = harbour.post("/enter", &[], &form).await;
        assert_eq!((entered.status, entered.header("location")), (303, Some("/")), "{next}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_set_over_tls_is_secure() {
    let harbour = Harbour::new().await;
    let origin = format!("https://{NAMED}");
    let headers = [("Host", NAMED), ("Origin", origin.as_str())];
    let entered = harbour.post("/enter", &headers, &format!("secret={OPERATOR}")).await;
    assert!(entered.header("set-cookie").unwrap().ends_with("; Secure"), "{entered:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_cookies_of_one_name_are_ignored() {
    let harbour = Harbour::new().await;
    let (cookie, _) = harbour.session(OPERATOR).await;
    assert!(is_in(&harbour, &format!("theme=dark; {cookie}")).await);
    for cookies in [
        format!("{cookie}; rutter_session=tossed"),
        format!("rutter_session=tossed; {cookie}"),
        format!("x{cookie}"),
        cookie.to_uppercase(),
        format!("{cookie}0"),
    ] {
        assert!(!is_in(&harbour, &cookies).await, "{cookies}");
    }
}
