//! Alerts, alert rules and silences.

use crate::app::App;
use crate::error::AppError;
use crate::principal::Principal;
use crate::rights::Operation;
use rutter_observe::watch::alert::{AlertRecord, AlertState};
use rutter_observe::watch::rule::{AlertRule, AlertRuleChange, NewAlertRule};
use rutter_observe::watch::silence::{AlertSilence, NewSilence};
use std::sync::Arc;

impl App {
    /// Alerts, newest first.
    pub async fn alerts(&self, caller: &Principal, state: Option<AlertState>) -> Result<Vec<AlertRecord>, AppError> {
        self.require(caller, Operation::ReadAlerts)?;
        Ok(self.watch.alerts(&caller.tenant, state).await?)
    }

    /// Alerts that fire now, from memory.
    pub fn firing(&self, caller: &Principal) -> Result<Arc<[AlertRecord]>, AppError> {
        self.require(caller, Operation::ReadAlerts)?;
        Ok(self.watch.firing(&caller.tenant))
    }

    /// Acknowledges an alert: its notifications are not repeated.
    pub async fn acknowledge_alert(&self, caller: &Principal, id: &str, note: &str) -> Result<AlertRecord, AppError> {
        self.require(caller, Operation::AcknowledgeAlert)?;
        Ok(self.watch.acknowledge_alert(&caller.tenant, &caller.actor(), id, note).await?)
    }

    pub async fn alert_rules(&self, caller: &Principal) -> Result<Vec<AlertRule>, AppError> {
        self.require(caller, Operation::ReadAlerts)?;
        Ok(self.watch.rules(&caller.tenant).await?)
    }

    pub async fn create_alert_rule(&self, caller: &Principal, new: NewAlertRule) -> Result<AlertRule, AppError> {
        self.require(caller, Operation::ChangeAlertRules)?;
        Ok(self.watch.create_rule(&caller.tenant, &caller.actor(), new).await?)
    }

    /// Changes the given fields; refused if the rule has another version than the expected one.
    pub async fn change_alert_rule(
        &self,
        caller: &Principal,
        id: &str,
        change: AlertRuleChange,
        expected: Option<u64>,
    ) -> Result<AlertRule, AppError> {
        self.require(caller, Operation::ChangeAlertRules)?;
        Ok(self.watch.update_rule(&caller.tenant, &caller.actor(), id, change, expected).await?)
    }

    /// Removes a rule; a built-in one is reset to its defaults.
    pub async fn delete_alert_rule(&self, caller: &Principal, id: &str) -> Result<(), AppError> {
        self.require(caller, Operation::ChangeAlertRules)?;
        Ok(self.watch.delete_rule(&caller.tenant, &caller.actor(), id).await?)
    }

    pub async fn silences(&self, caller: &Principal) -> Result<Vec<AlertSilence>, AppError> {
        self.require(caller, Operation::ReadAlerts)?;
        Ok(self.watch.silences(&caller.tenant).await?)
    }

    /// Suppresses notifications for a while.
    pub async fn silence(&self, caller: &Principal, new: NewSilence) -> Result<AlertSilence, AppError> {
        self.require(caller, Operation::SilenceAlerts)?;
        Ok(self.watch.silence(&caller.tenant, &caller.actor(), new).await?)
    }

    pub async fn end_silence(&self, caller: &Principal, id: &str) -> Result<(), AppError> {
        self.require(caller, Operation::SilenceAlerts)?;
        Ok(self.watch.delete_silence(&caller.tenant, &caller.actor(), id).await?)
    }
}
