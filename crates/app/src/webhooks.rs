//! Webhooks and their deliveries.

use crate::app::App;
use crate::error::AppError;
use crate::principal::Principal;
use crate::rights::Operation;
use rutter_core::port::outbox::{DeliveryCounts, DeliveryState};
use rutter_core::port::query::{ListPage, Pagination};
use rutter_observe::watch::webhook::{NewWebhook, SecretWebhook, WebhookChange, WebhookView};
use rutter_observe::watch::{DeliveryDetail, DeliveryListItem, WebhookTest};

impl App {
    pub async fn webhooks(&self, caller: &Principal) -> Result<Vec<WebhookView>, AppError> {
        self.require(caller, Operation::ReadWebhooks)?;
        Ok(self.watch.webhooks(&caller.tenant).await?)
    }

    pub async fn webhook(&self, caller: &Principal, id: &str) -> Result<WebhookView, AppError> {
        self.require(caller, Operation::ReadWebhooks)?;
        Ok(self.watch.webhook(&caller.tenant, id).await?)
    }

    /// Creates a webhook and returns its secret, this one time.
    pub async fn create_webhook(&self, caller: &Principal, new: NewWebhook) -> Result<SecretWebhook, AppError> {
        self.require(caller, Operation::ChangeWebhooks)?;
        Ok(self.watch.create_webhook(&caller.tenant, &caller.actor(), new).await?)
    }

    /// Changes the given fields; refused if the webhook has another version than the expected one.
    pub async fn change_webhook(
        &self,
        caller: &Principal,
        id: &str,
        change: WebhookChange,
        expected: Option<u64>,
    ) -> Result<WebhookView, AppError> {
        self.require(caller, Operation::ChangeWebhooks)?;
        Ok(self.watch.update_webhook(&caller.tenant, &caller.actor(), id, change, expected).await?)
    }

    pub async fn delete_webhook(&self, caller: &Principal, id: &str) -> Result<(), AppError> {
        self.require(caller, Operation::ChangeWebhooks)?;
        Ok(self.watch.delete_webhook(&caller.tenant, &caller.actor(), id).await?)
    }

    /// Creates a new secret and returns it, this one time.
    pub async fn rotate_webhook(&self, caller: &Principal, id: &str) -> Result<SecretWebhook, AppError> {
        self.require(caller, Operation::ChangeWebhooks)?;
        Ok(self.watch.rotate_webhook(&caller.tenant, &caller.actor(), id).await?)
    }

    /// Sends a test event at once.
    pub async fn test_webhook(&self, caller: &Principal, id: &str) -> Result<WebhookTest, AppError> {
        self.require(caller, Operation::ChangeWebhooks)?;
        Ok(self.watch.test_webhook(&caller.tenant, id).await?)
    }

    /// Deliveries, newest first: of one webhook or of all.
    pub async fn deliveries(
        &self,
        caller: &Principal,
        webhook: Option<&str>,
        state: Option<DeliveryState>,
        page: Pagination,
    ) -> Result<ListPage<DeliveryListItem>, AppError> {
        self.require(caller, Operation::ReadWebhooks)?;
        Ok(self.watch.deliveries(&caller.tenant, webhook, state, page).await?)
    }

    /// Deliveries by state: of one webhook or of all.
    pub async fn delivery_counts(&self, caller: &Principal, webhook: Option<&str>) -> Result<DeliveryCounts, AppError> {
        self.require(caller, Operation::ReadWebhooks)?;
        Ok(self.watch.delivery_counts(&caller.tenant, webhook).await?)
    }

    /// A delivery with its body and every attempt.
    pub async fn delivery(&self, caller: &Principal, number: u64) -> Result<DeliveryDetail, AppError> {
        self.require(caller, Operation::ReadWebhooks)?;
        Ok(self.watch.delivery(&caller.tenant, number).await?)
    }

    /// Sends a delivery again, with the same id.
    pub async fn redeliver(&self, caller: &Principal, number: u64) -> Result<(), AppError> {
        self.require(caller, Operation::ChangeWebhooks)?;
        Ok(self.watch.redeliver(&caller.tenant, &caller.actor(), number).await?)
    }
}
