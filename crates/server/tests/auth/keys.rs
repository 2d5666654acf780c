//! Keys: what they let in, how long, and what is kept of them.

use crate::harbour::{AGENT, Harbour, OPERATOR, owner, tenant, tokens};
use rutter_core::id::TenantId;
use rutter_core::port::query::Page;
use rutter_core::port::register::Kind;
use rutter_core::time::Millis;
use rutter_server::auth::key::{KeyStatus, NewKey};
use rutter_server::auth::{Scope, Scopes, Unknown};
use rutter_server::guest::Guest;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn new(name: &str, scopes: &[Scope], expires_in: Option<Millis>) -> NewKey {
    NewKey { name: name.to_owned(), scopes: scopes.iter().copied().collect(), expires_in }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_once_and_kept_as_a_hash() {
    let harbour = Harbour::new().await;
    let (view, secret) = harbour.key("laptop", &[Scope::Read]).await;
    assert!(secret.starts_with(&format!("rutter_{}_", view.id)), "{secret}");
    assert_eq!(secret.rsplit('_').next().unwrap().len(), 64);
    let notes = harbour.deck.desk.register.list(&tenant(), Kind::Key, Page::first(10)).await.unwrap();
    let kept = notes.items[0].value.to_string();
    let chance = secret.rsplit('_').next().unwrap();
    assert!(!kept.contains(chance) && kept.contains("laptop"), "{kept}");
    let listed = harbour.auth.list(&owner()).unwrap();
    assert_eq!(listed, [view]);
    assert!(!json!(listed).to_string().contains(chance));
    let size = harbour.deck.desk.feed.size(&tenant()).await.unwrap();
    let newest = harbour.deck.desk.feed.after(&tenant(), size - 1, 1).await.unwrap();
    let entry = json!(newest.items[0].stored).to_string();
    assert!(entry.contains("setting_changed") && entry.contains("laptop"), "{entry}");
    assert!(!entry.contains(chance));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_good_until_it_expires_or_is_revoked_also_after_a_restart() {
    let harbour = Harbour::new().await;
    let expiring = new("expiring", &[Scope::Read], Some(Millis::hours(1)));
    let (_, expiring) = harbour.auth.create(&owner(), expiring).await.unwrap();
    let (view, revoked) = harbour.key("revoked", &[Scope::Read]).await;
    let (_, stays) = harbour.key("stays", &[Scope::Read, Scope::Operate]).await;
    let known = |harbour: &Harbour, secret: &str| {
        harbour.auth.recognise(secret, PEER).map(|principal| (principal.name, principal.scopes))
    };
    let read: Scopes = [Scope::Read].into();
    harbour.time.pass(Millis(Millis::hours(1).0 - 1));
    assert_eq!(known(&harbour, &expiring), Ok(("expiring".to_owned(), read.clone())));
    assert_eq!(known(&harbour, &revoked), Ok(("revoked".to_owned(), read)));
    harbour.time.pass(Millis(1));
    assert_eq!(known(&harbour, &expiring), Err(Unknown::Expired));
    let gone = harbour.auth.revoke(&owner(), &view.id).await.unwrap();
    assert_eq!(gone.status, KeyStatus::Revoked);
    assert_eq!(known(&harbour, &revoked), Err(Unknown::Revoked));
    assert_eq!(harbour.auth.revoke(&owner(), &view.id).await.unwrap().revoked_at, gone.revoked_at);

    let harbour = harbour.restarted(tokens()).await;
    assert_eq!(known(&harbour, &revoked), Err(Unknown::Revoked));
    assert_eq!(known(&harbour, &expiring), Err(Unknown::Expired));
    assert_eq!(known(&harbour, &stays).unwrap().0, "stays");
    let other = format!("{}{}", &stays[..stays.len() - 1], if stays.ends_with('0') { '1' } else { '0' });
    assert_eq!(known(&harbour, &other), Err(Unknown::Nobodys));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gives_rights_they_do_not_have() {
    let harbour = Harbour::new().await;
    let guest = |scopes: &[Scope]| Guest { scopes: scopes.iter().copied().collect(), ..owner() };
    let admin = guest(&[Scope::Admin]);
    for (by, scopes, lacking) in [
        (guest(&[Scope::Read, Scope::Operate, Scope::Approve]), vec![Scope::Read], Some("admin")),
        (admin.clone(), vec![Scope::Approve], Some("approve")),
        (admin.clone(), vec![Scope::Admin, Scope::Operate], Some("operate")),
        (admin, vec![Scope::Admin], None),
    ] {
        let made = harbour.auth.create(&by, new("somebody", &scopes, None)).await;
        match lacking {
            None => assert!(made.is_ok()),
            Some(scope) => {
                let fault = made.unwrap_err();
                assert_eq!(fault.code, "server.not_allowed");
                assert!(fault.message.contains(scope), "{}", fault.message);
            }
        }
    }
    let nobody = guest(&[Scope::Read]);
    assert_eq!(harbour.auth.list(&nobody).unwrap_err().code, "server.not_allowed");
    assert_eq!(harbour.auth.revoke(&nobody, "x").await.unwrap_err().code, "server.not_allowed");
    assert_eq!(harbour.auth.list(&owner()).unwrap().len(), 1, "nothing else was made");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_key_may_be_is_limited_by_name() {
    let harbour = Harbour::new().await;
    harbour.key("taken", &[Scope::Read]).await;
    let long = "n".repeat(128);
    let too_long = "n".repeat(129);
    let read = &[Scope::Read][..];
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
        harbour.key(&format!("key {number}"), &[Scope::Read]).await;
    }
    let fault = harbour.auth.create(&owner(), new("one more", &[Scope::Read], None)).await.unwrap_err();
    assert!(fault.message.contains("1000"), "{}", fault.message);
    let harbour = harbour.restarted(tokens()).await;
    assert_eq!(harbour.auth.list(&owner()).unwrap().len(), 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_key_was_used_is_kept_now_and_then_and_not_on_the_way() {
    let harbour = Harbour::new().await;
    let (view, secret) = harbour.key("laptop", &[Scope::Read]).await;
    let version = || async {
        let register = &harbour.deck.desk.register;
        register.find(&tenant(), Kind::Key, &view.id).await.unwrap().unwrap().version
    };
    for _ in 0..50 {
        harbour.auth.recognise(&secret, PEER).unwrap();
    }
    assert_eq!(version().await, 1, "no request waited for the disk");
    harbour.auth.keep().await.unwrap();
    assert_eq!(version().await, 2);
    harbour.auth.keep().await.unwrap();
    assert_eq!(version().await, 2, "nothing has changed since");
    let used = harbour.auth.list(&owner()).unwrap()[0].last_used_at.clone();
    let harbour = harbour.restarted(tokens()).await;
    assert!(used.is_some());
    assert_eq!(harbour.auth.list(&owner()).unwrap()[0].last_used_at, used);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_used_while_it_is_revoked_stays_revoked() {
    let harbour = Harbour::new().await;
    for round in 0..20 {
        let (view, secret) = harbour.key(&format!("key {round}"), &[Scope::Read]).await;
        let (by, auth) = (owner(), &harbour.auth);
        let uses = async {
            for _ in 0..20 {
                let _ = auth.recognise(&secret, PEER);
                auth.keep().await.unwrap();
            }
        };
        let (revoked, ()) = tokio::join!(auth.revoke(&by, &view.id), uses);
        revoked.unwrap();
        assert_eq!(auth.recognise(&secret, PEER), Err(Unknown::Revoked));
    }
    let harbour = harbour.restarted(tokens()).await;
    let listed = harbour.auth.list(&owner()).unwrap();
    assert!(listed.iter().all(|key| key.status == KeyStatus::Revoked));
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_wrong_secrets_a_minute_are_looked_at_and_one_who_has_the_right_one_still_comes_in() {
    let harbour = Harbour::new().await;
    let (_, key) = harbour.key("laptop", &[Scope::Read, Scope::Operate]).await;
    let ask = |secret: String| {
        let harbour = &harbour;
        async move { harbour.get("/mcp", &[("Authorization", &format!("Bearer {secret}"))]).await }
    };
    for number in 0..9 {
        assert_eq!(ask(format!("wrong-{number}")).await.status, 401);
    }
    assert_eq!(ask(OPERATOR.to_owned()).await.status, 406, "in, though not with what MCP wants");
    assert_eq!(ask("wrong-10".to_owned()).await.status, 401);
    let refused = ask("wrong-11".to_owned()).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("60")), "{refused:?}");
    assert!(refused.has("server.busy"));
    assert_eq!(ask(OPERATOR.to_owned()).await.status, 429, "a chosen token could be found by trying");
    assert_eq!(ask(key.clone()).await.status, 406, "a made one cannot");
    assert_eq!(ask(format!("{}0", &key[..key.len() - 1])).await.status, 429);
    let form = harbour.post("/enter", &[], &format!("secret={AGENT}")).await;
    assert_eq!((form.status, form.header("retry-after")), (429, Some("60")), "the form counts with the rest");
    harbour.time.pass(Millis::seconds(60));
    assert_eq!(ask(OPERATOR.to_owned()).await.status, 406);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_shows_nothing_does_not_count_as_wrong() {
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
async fn guests_by_key_are_told_apart_by_more_than_their_name() {
    let harbour = Harbour::new().await;
    let (first, one) = harbour.key("laptop", &[Scope::Read, Scope::Operate]).await;
    harbour.auth.revoke(&owner(), &first.id).await.unwrap();
    let (_, other) = harbour.key("laptop", &[Scope::Read, Scope::Operate]).await;
    assert_eq!(harbour.auth.recognise(&one, PEER), Err(Unknown::Revoked));
    let guest = harbour.auth.recognise(&other, PEER).unwrap().guest(Default::default());
    assert_eq!((guest.name.as_str(), guest.tenant), ("laptop", TenantId::new("default")));
    assert!(!guest.id.contains(&first.id) && guest.id.starts_with("key:"), "{}", guest.id);
}
