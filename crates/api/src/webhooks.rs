//! Webhooks and their deliveries.

use crate::idempotent_replies::Idempotency;
use crate::reply::{ApiReply, ListReply};
use crate::request::ApiRequest;
use crate::route::{ApiRoute, NoParameters, RouteSpec};
use rutter_app::error::AppError;
use rutter_app::rights::Operation;
use rutter_core::port::outbox::DeliveryState;
use rutter_core::port::query::ListPage;
use rutter_observe::watch::webhook::{NewWebhook, SecretWebhook, WebhookChange, WebhookView};
use rutter_observe::watch::{DeliveryDetail, DeliveryListItem, WebhookTest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) fn routes() -> Vec<ApiRoute> {
    let read = |about: RouteSpec| about.right(Operation::ReadWebhooks);
    let changes = |about: RouteSpec| about.right(Operation::ChangeWebhooks);
    vec![
        ApiRoute::new(read(RouteSpec::get("/webhooks", "listWebhooks", "Webhooks, oldest first")), list),
        ApiRoute::with_body(
            changes(RouteSpec::post("/webhooks", "createWebhook", "Create a webhook; its secret is returned once"))
                .success(&[201])
                .refuses(&[422])
                .idempotency(Idempotency::Reply { without: Some("secret") }),
            create,
        ),
        ApiRoute::new(read(RouteSpec::get("/webhooks/{id}", "getWebhook", "One webhook").success(&[200, 304])), show),
        ApiRoute::with_body(
            changes(RouteSpec::patch("/webhooks/{id}", "changeWebhook", "Change the given fields of a webhook"))
                .refuses(&[409, 412, 422]),
            change,
        ),
        ApiRoute::new(
            changes(RouteSpec::delete("/webhooks/{id}", "deleteWebhook", "Remove a webhook")).refuses(&[409]),
            delete,
        ),
        ApiRoute::with_body(
            changes(RouteSpec::post("/webhooks/{id}/rotate", "rotateWebhook", "Create a new secret, returned once"))
                .refuses(&[409])
                .idempotency(Idempotency::Reply { without: Some("secret") }),
            rotate,
        ),
        ApiRoute::with_body(
            changes(RouteSpec::post(
                "/webhooks/{id}/test",
                "testWebhook",
                "Send a test event at once and return the result",
            )),
            test,
        ),
        ApiRoute::new(
            read(RouteSpec::get("/deliveries", "listDeliveries", "Deliveries, newest first")).tag("webhooks"),
            deliveries,
        ),
        ApiRoute::new(
            read(RouteSpec::get("/deliveries/{number}", "getDelivery", "A delivery with every attempt"))
                .tag("webhooks"),
            delivery,
        ),
        ApiRoute::with_body(
            changes(RouteSpec::post(
                "/deliveries/{number}/redeliver",
                "redeliver",
                "Send a delivery again, with the same id",
            ))
            .tag("webhooks"),
            redeliver,
        ),
    ]
}

async fn list(call: ApiRequest, _: NoParameters) -> Result<ApiReply<ListReply<WebhookView>>, AppError> {
    let items = call.app().webhooks(&call.principal).await?;
    Ok(call.list(ListPage { items, next: None }))
}

async fn create(call: ApiRequest, new: NewWebhook) -> Result<ApiReply<SecretWebhook>, AppError> {
    let made = call.app().create_webhook(&call.principal, new).await?;
    let location = format!("{}/webhooks/{}", crate::route::BASE, made.webhook.id);
    Ok(ApiReply::created(made, &location))
}

async fn show(call: ApiRequest, _: NoParameters) -> Result<ApiReply<WebhookView>, AppError> {
    let webhook = call.app().webhook(&call.principal, call.id()).await?;
    let tag = tag(&webhook);
    Ok(if call.has_current_etag(&tag) { ApiReply::unchanged(&tag) } else { ApiReply::ok(webhook).tag(&tag) })
}

async fn change(call: ApiRequest, change: WebhookChange) -> Result<ApiReply<WebhookView>, AppError> {
    let (app, caller) = (call.app(), &call.principal);
    let seen = app.webhook(caller, call.id()).await?;
    call.check_if_match(&tag(&seen))?;
    let changed = app.change_webhook(caller, call.id(), change, Some(seen.version)).await?;
    let tag = tag(&changed);
    Ok(ApiReply::ok(changed).tag(&tag))
}

async fn delete(call: ApiRequest, _: NoParameters) -> Result<ApiReply<()>, AppError> {
    call.app().delete_webhook(&call.principal, call.id()).await?;
    Ok(ApiReply::nothing())
}

async fn rotate(call: ApiRequest, _: NoParameters) -> Result<ApiReply<SecretWebhook>, AppError> {
    Ok(ApiReply::ok(call.app().rotate_webhook(&call.principal, call.id()).await?))
}

async fn test(call: ApiRequest, _: NoParameters) -> Result<ApiReply<WebhookTest>, AppError> {
    Ok(ApiReply::ok(call.app().test_webhook(&call.principal, call.id()).await?))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeliveriesQuery {
    /// The id of a webhook.
    webhook: Option<String>,
    /// pending, delivered or dead
    state: Option<String>,
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    cursor: Option<String>,
}

async fn deliveries(
    call: ApiRequest,
    query: DeliveriesQuery,
) -> Result<ApiReply<ListReply<DeliveryListItem>>, AppError> {
    let state = match query.state.as_deref() {
        None => None,
        Some(text) => {
            let wrong = || AppError::new("server.arguments", "state is pending, delivered or dead");
            let known = DeliveryState::ALL.into_iter().find(|state| state.as_str() == text);
            Some(known.ok_or_else(wrong)?)
        }
    };
    let page = call.page(query.limit, query.cursor)?;
    let found = call.app().deliveries(&call.principal, query.webhook.as_deref(), state, page).await?;
    Ok(call.list(found))
}

async fn delivery(call: ApiRequest, _: NoParameters) -> Result<ApiReply<DeliveryDetail>, AppError> {
    Ok(ApiReply::ok(call.app().delivery(&call.principal, number(&call)?).await?))
}

#[derive(Debug, Serialize, JsonSchema)]
struct Redelivered {
    number: u64,
}

async fn redeliver(call: ApiRequest, _: NoParameters) -> Result<ApiReply<Redelivered>, AppError> {
    let number = number(&call)?;
    call.app().redeliver(&call.principal, number).await?;
    Ok(ApiReply::ok(Redelivered { number }))
}

fn number(call: &ApiRequest) -> Result<u64, AppError> {
    let text = call.part("number");
    // The store counts deliveries in numbers of 63 bits.
    let number = text.parse::<u64>().ok().filter(|number| i64::try_from(*number).is_ok());
    number.ok_or_else(|| AppError::missing("delivery", text))
}

fn tag(webhook: &WebhookView) -> String {
    format!("\"{}\"", webhook.version)
}
