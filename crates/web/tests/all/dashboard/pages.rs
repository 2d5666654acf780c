//! The frame: empty pages, errors, headers, assets, theme and messages.

use crate::dashboard::harbour::Harbour;
use crate::dashboard::markup::check;
use reqwest::StatusCode;
use rutter_app::auth::AccessScope;
use rutter_testkit::server::fixture::ServerFixture;

pub const PAGES: [&str; 5] = ["/", "/executions", "/approvals", "/journal", "/help"];

#[tokio::test(flavor = "multi_thread")]
async fn every_empty_page_shows_how_to_start() {
    let deck = ServerFixture::new().await;
    let harbour = Harbour::open(&deck).await;
    for (path, expected) in PAGES.into_iter().zip([
        "rutter demo",
        "rutter run plan.yaml",
        "approval: { required: true }",
        "The journal is empty",
        "waits until a person answers",
    ]) {
        let page = harbour.page(path).await;
        assert!(page.contains(expected), "{path}: {page}");
        check(path, &page);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_look_like_other_pages() {
    let deck = ServerFixture::new().await;
    let harbour = Harbour::open(&deck).await;
    for (path, expected) in
        [("/nowhere", StatusCode::NOT_FOUND), ("/journal/export?format=xml", StatusCode::BAD_REQUEST)]
    {
        let (status, page) = harbour.get(path).await;
        assert_eq!(status, expected, "{path}");
        assert!(page.contains("class=\"rail\""), "{path}: {page}");
        check(path, &page);
    }
    let items = [("say", "approve"), ("reason", "it is right")];
    let (status, page) = harbour.post("/executions/exec_nothing/answer", &items).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_not_cached_and_load_nothing_external() {
    let deck = ServerFixture::new().await;
    let harbour = Harbour::open(&deck).await;
    for path in PAGES.into_iter().chain(["/nowhere"]) {
        let response = harbour.raw(path).await;
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!((header("cache-control"), header("x-content-type-options")), ("no-store".into(), "nosniff".into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn assets_are_cached_for_ever_under_their_content_hash() {
    let deck = ServerFixture::new().await;
    let harbour = Harbour::open(&deck).await;
    let page = harbour.page("/").await;
    let script = page.split("src=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let response = harbour.raw(&script).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.headers()["cache-control"].to_str().unwrap().contains("immutable"));
    assert_eq!(response.headers()["content-type"], "text/javascript; charset=utf-8");
    let body = response.text().await.unwrap();
    for module in body.split("from \"./").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let beside = script.replace("app.js", module);
        assert_eq!(harbour.raw(&beside).await.status(), StatusCode::OK, "{beside}");
    }
    let (folder, _) = script.rsplit_once('/').unwrap();
    for wrong in [format!("{folder}/other.js"), "/assets/000000000000/app.js".to_owned()] {
        assert_eq!(harbour.raw(&wrong).await.status(), StatusCode::NOT_FOUND, "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_theme_is_stored_and_applied_to_the_next_page() {
    let deck = ServerFixture::new().await;
    let harbour = Harbour::open(&deck).await;
    assert!(harbour.page("/").await.contains("data-theme=\"auto\""));
    let fields = [("theme", "dark"), ("back", "/journal?kind=paused")];
    assert_eq!(harbour.post("/theme", &fields).await, (StatusCode::SEE_OTHER, "/journal?kind=paused".to_owned()));
    let page = harbour.with_cookie("/", "other=1; rutter_theme=dark").await;
    assert!(page.contains("data-theme=\"dark\""), "{page}");
    let page = harbour.with_cookie("/", "rutter_theme=\"><script>").await;
    assert!(page.contains("data-theme=\"auto\""), "{page}");
    let elsewhere = [("theme", "light"), ("back", "//elsewhere.example/")];
    assert_eq!(harbour.post("/theme", &elsewhere).await.1, "/", "only to local pages");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_can_show_only_known_messages() {
    let deck = ServerFixture::new().await;
    let harbour = Harbour::open(&deck).await;
    assert!(harbour.page("/?said=paused-3").await.contains("3 executions: Paused"));
    for message in ["your-session-ended", "<b>", "paused-x", "paused-"] {
        let page = harbour.page(&format!("/?said={message}")).await;
        assert!(!page.contains("class=\"said"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_users_are_refused_with_the_missing_scope() {
    let deck = ServerFixture::new().await;
    let harbour = Harbour::open_for(&deck, &[AccessScope::Read]).await;
    let page = harbour.page("/journal").await;
    assert!(page.contains("Verify") && !page.contains("Sign checkpoint"), "{page}");
    for (path, scope) in [("/executions/bulk", "operate"), ("/journal/sign", "admin")] {
        let (status, page) = harbour.post(path, &[("action", "pause"), ("execution", "exec_1")]).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
        assert!(page.contains(&format!("scope {scope}")), "{page}");
    }
    let page = harbour.page("/alerts").await;
    assert!(page.contains("Webhooks and deliveries need the scope admin") && !page.contains("New webhook"), "{page}");
}
