//! Keys: who may come in, and what they may do.

use crate::api::call::Call;
use crate::api::reply::{List, Reply};
use crate::api::route::{About, Keyed, Nothing, Route};
use crate::auth::key::{KeyView, NewKey};
use crate::auth::{Scope, Scopes};
use crate::fault::Fault;
use rutter_core::port::query::Listing;
use rutter_core::time::Millis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            About::get("/keys", "listKeys", "All keys, also those that are good no more").scope(Scope::Admin),
            list,
        ),
        Route::with_body(
            About::post("/keys", "createKey", "Make a key; its secret is shown once")
                .scope(Scope::Admin)
                .success(&[201])
                .keyed(Keyed::Reply { without: Some("secret") }),
            create,
        ),
        Route::new(
            About::delete("/keys/{id}", "revokeKey", "End a key, and every session that was begun with it")
                .scope(Scope::Admin)
                .success(&[200]),
            revoke,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KeyToBe {
    /// How journals call whoever comes with it.
    name: String,
    /// Nobody gives rights they do not have.
    scopes: Scopes,
    /// A span such as `12h` or `30d`; left out, it is good until it is revoked.
    expires_in: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct MadeKey {
    #[serde(flatten)]
    key: KeyView,
    /// Never shown again, nor to whoever asks again with the same Idempotency-Key.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

async fn list(call: Call, _: Nothing) -> Result<Reply<List<KeyView>>, Fault> {
    let items = call.desk().auth.list(&call.guest)?;
    Ok(call.list(Listing { items, next: None }))
}

async fn create(call: Call, new: KeyToBe) -> Result<Reply<MadeKey>, Fault> {
    let expires_in = match new.expires_in.as_deref() {
        None => None,
        Some(text) => {
            let wrong = || format!("expires_in is a span such as 12h or 30d, this is {text:?}");
            Some(Millis::parse(text).ok_or_else(|| Fault::new("server.arguments", wrong()))?)
        }
    };
    let new = NewKey { name: new.name, scopes: new.scopes, expires_in };
    let (key, secret) = call.desk().auth.create(&call.guest, new).await?;
    let location = format!("{}/keys/{}", crate::api::BASE, key.id);
    Ok(Reply::created(MadeKey { key, secret: Some(secret) }, &location))
}

async fn revoke(call: Call, _: Nothing) -> Result<Reply<KeyView>, Fault> {
    Ok(Reply::ok(call.desk().auth.revoke(&call.guest, call.id()).await?))
}
