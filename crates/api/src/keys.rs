//! API keys: who has access, and with which scopes.

use crate::idempotent_replies::Idempotency;
use crate::reply::{ApiReply, ListReply};
use crate::request::ApiRequest;
use crate::route::{ApiRoute, NoParameters, RouteSpec};
use rutter_app::auth::AccessScopes;
use rutter_app::auth::key::{ApiKeyView, CreatedKeyView, NewApiKey};
use rutter_app::error::AppError;
use rutter_app::rights::Operation;
use rutter_core::port::query::ListPage;
use rutter_core::time::Millis;
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        ApiRoute::new(
            RouteSpec::get("/keys", "listKeys", "All keys, including expired and revoked ones")
                .right(Operation::ManageKeys),
            list,
        ),
        ApiRoute::with_body(
            RouteSpec::post("/keys", "createKey", "Create a key; its secret is returned once")
                .right(Operation::ManageKeys)
                .success(&[201])
                .idempotency(Idempotency::Reply { without: Some("secret") }),
            create,
        ),
        ApiRoute::new(
            RouteSpec::delete("/keys/{id}", "revokeKey", "Revoke a key and every session started with it")
                .right(Operation::ManageKeys)
                .success(&[200]),
            revoke,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateKeyBody {
    /// The name of the principal in journals.
    name: String,
    /// At most the scopes of the caller.
    scopes: AccessScopes,
    /// A duration such as `12h` or `30d`; without it the key is valid until it is revoked.
    expires_in: Option<String>,
}

async fn list(call: ApiRequest, _: NoParameters) -> Result<ApiReply<ListReply<ApiKeyView>>, AppError> {
    let items = call.app().auth.list(&call.principal)?;
    Ok(call.list(ListPage { items, next: None }))
}

async fn create(call: ApiRequest, new: CreateKeyBody) -> Result<ApiReply<CreatedKeyView>, AppError> {
    let expires_in = match new.expires_in.as_deref() {
        None => None,
        Some(text) => {
            let wrong = || format!("expires_in is a span such as 12h or 30d, this is {text:?}");
            Some(Millis::parse(text).ok_or_else(|| AppError::new("server.arguments", wrong()))?)
        }
    };
    let new = NewApiKey { name: new.name, scopes: new.scopes, expires_in };
    let (key, secret) = call.app().auth.create(&call.principal, new).await?;
    let location = format!("{}/keys/{}", crate::route::BASE, key.id);
    Ok(ApiReply::created(CreatedKeyView { key, secret: Some(secret) }, &location))
}

async fn revoke(call: ApiRequest, _: NoParameters) -> Result<ApiReply<ApiKeyView>, AppError> {
    Ok(ApiReply::ok(call.app().auth.revoke(&call.principal, call.id()).await?))
}
