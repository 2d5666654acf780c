//! Webhooks and what was sent to them.

use crate::api::call::Call;
use crate::api::reply::{List, Reply};
use crate::api::route::{About, Keyed, Nothing, Route};
use crate::auth::Scope;
use crate::fault::Fault;
use crate::watch::webhook::{NewWebhook, SecretWebhook, Webhook, WebhookChange};
use crate::watch::{DeliveryDetail, DeliveryLine, Tested};
use rutter_core::port::outbox::DeliveryState;
use rutter_core::port::query::Listing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) fn routes() -> Vec<Route> {
    let admin = |about: About| about.scope(Scope::Admin);
    vec![
        Route::new(
            admin(About::get("/webhooks", "listWebhooks", "Where events are sent, oldest first")),
            list,
        ),
        Route::with_body(
            admin(About::post(
                "/webhooks",
                "createWebhook",
                "Send events somewhere; the secret is shown once",
            ))
            .success(&[201])
            .refuses(&[422])
            .keyed(Keyed::Reply { without: Some("secret") }),
            create,
        ),
        Route::new(
            admin(About::get("/webhooks/{id}", "getWebhook", "One webhook").success(&[200, 304])),
            show,
        ),
        Route::with_body(
            admin(About::patch("/webhooks/{id}", "changeWebhook", "Change what is named; the rest stays"))
                .refuses(&[409, 412, 422]),
            change,
        ),
        Route::new(
            admin(About::delete("/webhooks/{id}", "deleteWebhook", "Send nothing there any more"))
                .refuses(&[409]),
            delete,
        ),
        Route::with_body(
            admin(About::post("/webhooks/{id}/rotate", "rotateWebhook", "A new secret, shown once"))
                .refuses(&[409])
                .keyed(Keyed::Reply { without: Some("secret") }),
            rotate,
        ),
        Route::with_body(
            admin(About::post(
                "/webhooks/{id}/test",
                "testWebhook",
                "Send a test at once and tell what happened",
            )),
            test,
        ),
        Route::new(
            admin(About::get("/deliveries", "listDeliveries", "What was, or is to be, sent, newest first"))
                .tag("webhooks"),
            deliveries,
        ),
        Route::new(
            admin(About::get("/deliveries/{number}", "getDelivery", "A delivery with every try"))
                .tag("webhooks"),
            delivery,
        ),
        Route::with_body(
            admin(About::post(
                "/deliveries/{number}/redeliver",
                "redeliver",
                "Send it again, under the same id",
            ))
            .tag("webhooks"),
            redeliver,
        ),
    ]
}

async fn list(call: Call, _: Nothing) -> Result<Reply<List<Webhook>>, Fault> {
    let items = call.desk().watch.webhooks(&call.guest.tenant).await?;
    Ok(call.list(Listing { items, next: None }))
}

async fn create(call: Call, new: NewWebhook) -> Result<Reply<SecretWebhook>, Fault> {
    let made = call.desk().watch.create_webhook(&call.guest.tenant, &call.guest.actor(), new).await?;
    let location = format!("{}/webhooks/{}", crate::api::BASE, made.webhook.id);
    Ok(Reply::created(made, &location))
}

async fn show(call: Call, _: Nothing) -> Result<Reply<Webhook>, Fault> {
    let webhook = call.desk().watch.webhook(&call.guest.tenant, call.id()).await?;
    let tag = tag(&webhook);
    Ok(if call.has(&tag) { Reply::unchanged(&tag) } else { Reply::ok(webhook).tag(&tag) })
}

async fn change(call: Call, change: WebhookChange) -> Result<Reply<Webhook>, Fault> {
    let (watch, tenant) = (&call.desk().watch, &call.guest.tenant);
    let seen = watch.webhook(tenant, call.id()).await?;
    call.expects(&tag(&seen))?;
    let changed =
        watch.update_webhook(tenant, &call.guest.actor(), call.id(), change, Some(seen.version)).await?;
    let tag = tag(&changed);
    Ok(Reply::ok(changed).tag(&tag))
}

async fn delete(call: Call, _: Nothing) -> Result<Reply<()>, Fault> {
    call.desk().watch.delete_webhook(&call.guest.tenant, &call.guest.actor(), call.id()).await?;
    Ok(Reply::nothing())
}

async fn rotate(call: Call, _: Nothing) -> Result<Reply<SecretWebhook>, Fault> {
    let actor = call.guest.actor();
    Ok(Reply::ok(call.desk().watch.rotate_webhook(&call.guest.tenant, &actor, call.id()).await?))
}

async fn test(call: Call, _: Nothing) -> Result<Reply<Tested>, Fault> {
    Ok(Reply::ok(call.desk().watch.test_webhook(&call.guest.tenant, call.id()).await?))
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

async fn deliveries(call: Call, query: DeliveriesQuery) -> Result<Reply<List<DeliveryLine>>, Fault> {
    let state = match query.state.as_deref() {
        None => None,
        Some(text) => {
            let wrong = || Fault::new("server.arguments", "state is pending, delivered or dead");
            let known = DeliveryState::ALL.into_iter().find(|state| state.as_str() == text);
            Some(known.ok_or_else(wrong)?)
        }
    };
    let page = call.page(query.limit, query.cursor)?;
    let watch = &call.desk().watch;
    let found = watch.deliveries(&call.guest.tenant, query.webhook.as_deref(), state, page).await?;
    Ok(call.list(found))
}

async fn delivery(call: Call, _: Nothing) -> Result<Reply<DeliveryDetail>, Fault> {
    Ok(Reply::ok(call.desk().watch.delivery(&call.guest.tenant, number(&call)?).await?))
}

#[derive(Debug, Serialize, JsonSchema)]
struct Redelivered {
    number: u64,
}

async fn redeliver(call: Call, _: Nothing) -> Result<Reply<Redelivered>, Fault> {
    let number = number(&call)?;
    call.desk().watch.redeliver(&call.guest.tenant, &call.guest.actor(), number).await?;
    Ok(Reply::ok(Redelivered { number }))
}

fn number(call: &Call) -> Result<u64, Fault> {
    let text = call.part("number");
    // The store counts deliveries in numbers of 63 bits.
    let number = text.parse::<u64>().ok().filter(|number| i64::try_from(*number).is_ok());
    number.ok_or_else(|| Fault::missing("delivery", text))
}

fn tag(webhook: &Webhook) -> String {
    format!("\"{}\"", webhook.version)
}
