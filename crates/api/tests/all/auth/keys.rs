//! Keys: what they allow, how long, and what is stored of them.

use crate::security::harbour::{AGENT, Harbour, OPERATOR, owner, tenant, tokens};
use rutter_app::auth::key::{KeyStatus, NewApiKey};
use rutter_app::auth::{AccessScope, AccessScopes, SecretRejection};
use rutter_app::principal::Principal;
use rutter_core::id::TenantId;
use rutter_core::port::query::Pagination;
use rutter_core::port::register::RegisterKind;
use rutter_core::time::Millis;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn new(name: &str, scopes: &[AccessScope], expires_in: Option<Millis>) -> NewApiKey {
    NewApiKey { name: name.to_owned(), scopes: scopes.iter().copied().collect(), expires_in }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_once_and_stored_as_a_hash() {
    let harbour = Harbour::new().await;
    let (view, secret) = harbour.key("laptop", &[AccessScope::Read]).await;
    assert!(secret.starts_with(&format!("rutter_{}_", view.id)), "{secret}");
    assert_eq!(secret.rsplit('_').next().unwrap().len(), 64);
    let notes = harbour.deck.app.register.list(&tenant(), RegisterKind::Key, Pagination::first(10)).await.unwrap();
    let stored = notes.items[0].value.to_string();
    let chance = secret.rsplit('_').next().unwrap();
    assert!(!stored.contains(chance) && stored.contains("laptop"), "{stored}");
    let listed = harbour.auth.list(&owner()).unwrap();
    assert_eq!(listed, [view]);
    assert!(!json!(listed).to_string().contains(chance));
    let size = harbour.deck.app.feed.size(&tenant()).await.unwrap();
    let newest = harbour.deck.app.feed.entries_after(&tenant(), size - 1, 1).await.unwrap();
    let entry = json!(newest.items[0].stored).to_string();
    assert!(entry.contains("setting_changed") && entry.contains("laptop"), "{entry}");
    assert!(!entry.contains(chance));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_valid_until_it_expires_or_is_revoked_also_after_a_restart() {
    let harbour = Harbour::new().await;
    let expiring = new("expiring", &[AccessScope::Read], Some(Millis::hours(1)));
    let (_, expiring) = harbour.auth.create(&owner(), expiring).await.unwrap();
    let (view, revoked) = harbour.key("revoked", &[AccessScope::Read]).await;
    let (_, stays) = harbour.key("stays", &[AccessScope::Read, AccessScope::Operate]).await;
    let known = |harbour: &Harbour, secret: &str| {
        harbour.auth.recognise(secret, PEER).map(|principal| (principal.name, principal.scopes))
    };
    let read: AccessScopes = [AccessScope::Read].into();
    harbour.time.pass(Millis(Millis::hours(1).0 - 1));
    assert_eq!(known(&harbour, &expiring), Ok(("expiring".to_owned(), read.clone())));
    assert_eq!(known(&harbour, &revoked), Ok(("revoked".to_owned(), read)));
    harbour.time.pass(Millis(1));
    assert_eq!(known(&harbour, &expiring), Err(SecretRejection::Expired));
    let gone = harbour.auth.revoke(&owner(), &view.id).await.unwrap();
    assert_eq!(gone.status, KeyStatus::Revoked);
    assert_eq!(known(&harbour, &revoked), Err(SecretRejection::Revoked));
    assert_eq!(harbour.auth.revoke(&owner(), &view.id).await.unwrap().revoked_at, gone.revoked_at);

    let harbour = harbour.restarted(tokens()).await;
    assert_eq!(known(&harbour, &revoked), Err(SecretRejection::Revoked));
    assert_eq!(known(&harbour, &expiring), Err(SecretRejection::Expired));
    assert_eq!(known(&harbour, &stays).unwrap().0, "stays");
    let other = format!("{}{}", &stays[..stays.len() - 1], if stays.ends_with('0') { '1' } else { '0' });
    assert_eq!(known(&harbour, &other), Err(SecretRejection::Unrecognised));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_expired_stays_expired_when_the_clock_is_set_back() {
    let harbour = Harbour::new().await;
    let expiring = async |harbour: &Harbour, name: &str| {
        let key = new(name, &[AccessScope::Read], Some(Millis::hours(1)));
        harbour.auth.create(&owner(), key).await.unwrap().1
    };
    let status = |harbour: &Harbour| harbour.auth.list(&owner()).unwrap()[0].status;
    let used = expiring(&harbour, "used").await;
    harbour.time.pass(Millis::hours(1));
    assert_eq!(harbour.auth.recognise(&used, PEER), Err(SecretRejection::Expired));
    harbour.time.set_back(Millis::hours(1));
    assert_eq!(harbour.auth.recognise(&used, PEER), Err(SecretRejection::Expired));
    assert_eq!(status(&harbour), KeyStatus::Expired);
    let harbour = harbour.restarted(tokens()).await;
    assert_eq!(harbour.auth.recognise(&used, PEER), Err(SecretRejection::Expired));

    // Nobody used it, and no process ran when it expired.
    let unused = expiring(&harbour, "unused").await;
    let time = harbour.time.clone();
    let harbour = harbour.restarted_after(tokens(), || time.pass(Millis::hours(1))).await;
    time.set_back(Millis::hours(1));
    assert_eq!(harbour.auth.recognise(&unused, PEER), Err(SecretRejection::Expired));
    let harbour = harbour.restarted(tokens()).await;
    assert_eq!(harbour.auth.recognise(&unused, PEER), Err(SecretRejection::Expired));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_cannot_have_more_scopes_than_its_creator() {
    let harbour = Harbour::new().await;
    let principal = |scopes: &[AccessScope]| Principal { scopes: scopes.iter().copied().collect(), ..owner() };
    let admin = principal(&[AccessScope::Read, AccessScope::Admin]);
    for (by, scopes, lacking) in [
        (
            principal(&[AccessScope::Read, AccessScope::Operate, AccessScope::Approve]),
            vec![AccessScope::Read],
            Some("admin"),
        ),
        (admin.clone(), vec![AccessScope::Approve], Some("approve")),
        (admin.clone(), vec![AccessScope::Admin, AccessScope::Operate], Some("operate")),
        (admin, vec![AccessScope::Admin], None),
    ] {
        let made = harbour.auth.create(&by, new("somebody", &scopes, None)).await;
        match lacking {
            None => assert!(made.is_ok()),
            Some(scope) => {
                let error = made.unwrap_err();
                assert_eq!(error.code, "server.not_allowed");
                assert!(error.message.contains(scope), "{}", error.message);
            }
        }
    }
    let nobody = principal(&[AccessScope::Read]);
    assert_eq!(harbour.auth.list(&nobody).unwrap_err().code, "server.not_allowed");
    assert_eq!(harbour.auth.revoke(&nobody, "x").await.unwrap_err().code, "server.not_allowed");
    assert_eq!(harbour.auth.list(&owner()).unwrap().len(), 1, "nothing else was created");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_keys_are_refused_with_a_code() {
    let harbour = Harbour::new().await;
    harbour.key("taken", &[AccessScope::Read]).await;
    let long = "n".repeat(128);
    let too_long = "n".repeat(129);
    let read = &[AccessScope::Read][..];
    for (name, scopes, expires_in, is_good) in [
        (long.as_str(), read, None, true),
        (too_long.as_str(), read, None, false),
        ("", read, None, false),
        ("  ", read, None, false),
        ("two\nlines", read, None, false),
        ("nothing", &[], None, false),
        ("at once", read, Some(Millis(0)), false),
        ("soon", read, Some(Millis(1)), true),
        ("taken", read, None, false),
        (" taken ", read, None, false),
        ("agent", read, None, false),
        ("operator", read, None, false),
        ("local", read, None, false),
    ] {
        let made = harbour.auth.create(&owner(), new(name, scopes, expires_in)).await;
        assert_eq!(made.is_ok(), is_good, "{name:?}");
        assert!(made.is_ok() || made.unwrap_err().code == "server.arguments", "{name:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn there_may_be_a_thousand_keys() {
    let harbour = Harbour::new().await;
    for number in 0..1_000 {
        harbour.key(&format!("key {number}"), &[AccessScope::Read]).await;
    }
    let error = harbour.auth.create(&owner(), new("one more", &[AccessScope::Read], None)).await.unwrap_err();
    assert!(error.message.contains("1000"), "{}", error.message);
    let harbour = harbour.restarted(tokens()).await;
    assert_eq!(harbour.auth.list(&owner()).unwrap().len(), 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_use_of_a_key_is_saved_now_and_then_outside_of_requests() {
    let harbour = Harbour::new().await;
    let (view, secret) = harbour.key("laptop", &[AccessScope::Read]).await;
    let version = || async {
        let register = &harbour.deck.app.register;
        register.find(&tenant(), RegisterKind::Key, &view.id).await.unwrap().unwrap().version
    };
    for _ in 0..50 {
        harbour.auth.recognise(&secret, PEER).unwrap();
    }
    assert_eq!(version().await, 1, "no request waits for the disk");
    harbour.auth.write_changes().await.unwrap();
    assert_eq!(version().await, 2);
    harbour.auth.write_changes().await.unwrap();
    assert_eq!(version().await, 2, "nothing has changed");
    let used = harbour.auth.list(&owner()).unwrap()[0].last_used_at.clone();
    let harbour = harbour.restarted(tokens()).await;
    assert!(used.is_some());
    assert_eq!(harbour.auth.list(&owner()).unwrap()[0].last_used_at, used);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_used_while_it_is_revoked_stays_revoked() {
    let harbour = Harbour::new().await;
    for round in 0..20 {
        let (view, secret) = harbour.key(&format!("key {round}"), &[AccessScope::Read]).await;
        let (by, auth) = (owner(), &harbour.auth);
        let uses = async {
            for _ in 0..20 {
                let _ = auth.recognise(&secret, PEER);
                auth.write_changes().await.unwrap();
            }
        };
        let (revoked, ()) = tokio::join!(auth.revoke(&by, &view.id), uses);
        revoked.unwrap();
        assert_eq!(auth.recognise(&secret, PEER), Err(SecretRejection::Revoked));
    }
    let harbour = harbour.restarted(tokens()).await;
    let listed = harbour.auth.list(&owner()).unwrap();
    assert!(listed.iter().all(|key| key.status == KeyStatus::Revoked));
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_wrong_secrets_a_minute_are_checked_and_a_valid_key_still_works() {
    let harbour = Harbour::new().await;
    let (_, key) = harbour.key("laptop", &[AccessScope::Read, AccessScope::Operate]).await;
    let ask = |secret: String| {
        let harbour = &harbour;
        async move { harbour.get("/mcp", &[("Authorization", &format!("Bearer {secret}"))]).await }
    };
    for number in 0..9 {
        assert_eq!(ask(format!("wrong-{number}")).await.status, 401);
    }
    assert_eq!(ask(OPERATOR.to_owned()).await.status, 406, "authenticated, though not a valid MCP request");
    assert_eq!(ask("wrong-10".to_owned()).await.status, 401);
    let refused = ask("wrong-11".to_owned()).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("60")), "{refused:?}");
    assert!(refused.has("server.busy"));
    assert_eq!(ask(OPERATOR.to_owned()).await.status, 429, "a chosen token could be guessed");
    assert_eq!(ask(key.clone()).await.status, 406, "a generated key cannot");
    let other_end = if key.ends_with('0') { '1' } else { '0' };
    assert_eq!(ask(format!("{}{other_end}", &key[..key.len() - 1])).await.status, 429);
    let form = harbour.post("/enter", &[], &format!("secret={AGENT}")).await;
    assert_eq!((form.status, form.header("retry-after")), (429, Some("60")), "the form counts with the rest");
    harbour.time.pass(Millis::seconds(60));
    assert_eq!(ask(OPERATOR.to_owned()).await.status, 406);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_credentials_do_not_count_as_wrong() {
    let harbour = Harbour::new().await;
    for _ in 0..30 {
        let unknown = harbour.get("/mcp", &[]).await;
        assert_eq!(unknown.status, 401);
        assert_eq!(unknown.header("www-authenticate"), Some("Bearer realm=\"rutter\""));
    }
    let bearer = format!("Bearer {OPERATOR}");
    assert_eq!(harbour.get("/mcp", &[("Authorization", &bearer)]).await.status, 406);
}

#[tokio::test(flavor = "multi_thread")]
async fn principals_with_keys_of_the_same_name_are_distinct() {
    let harbour = Harbour::new().await;
    let (first, one) = harbour.key("laptop", &[AccessScope::Read, AccessScope::Operate]).await;
    harbour.auth.revoke(&owner(), &first.id).await.unwrap();
    let (_, other) = harbour.key("laptop", &[AccessScope::Read, AccessScope::Operate]).await;
    assert_eq!(harbour.auth.recognise(&one, PEER), Err(SecretRejection::Revoked));
    let principal = harbour.auth.recognise(&other, PEER).unwrap();
    let id = principal.id();
    assert!(!id.contains(&first.id) && id.starts_with("key:"), "{id}");
    assert_eq!((principal.name.as_str(), principal.tenant), ("laptop", TenantId::new("default")));
}
