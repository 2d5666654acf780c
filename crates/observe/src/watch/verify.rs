//! Verification of a whole ledger, once a day and on request; the result is stored.

use super::WatchService;
use super::rfc3339::Rfc3339Timestamp;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::proof::LedgerCheck;
use rutter_core::port::register::{RegisterChange, RegisterKind, RegisterWrite};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MARK: &str = "verify";
const FINDINGS_MAX: usize = 20;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerVerification {
    /// When the verification started.
    pub at: Rfc3339Timestamp,
    pub clean: bool,
    /// The findings: what is wrong, or what was verified.
    pub findings: Vec<String>,
}

impl WatchService {
    /// Verifies the ledger from beginning to end and stores the result, so that the rule for it applies. May take a
    /// while.
    pub async fn verify(&self, tenant: &TenantId) -> Result<LedgerCheck, port::Error> {
        let at = self.now();
        let checked = self.ports.proof.verify(tenant).await;
        let (clean, mut findings) = match &checked {
            Ok(checked) => {
                let verdict = std::iter::once(checked.verdict.to_string());
                (checked.is_clean(), verdict.chain(checked.rows.iter().cloned()).collect::<Vec<String>>())
            }
            Err(port::Error::Corrupt(why)) => (false, vec![why.clone()]),
            Err(_) => return checked,
        };
        findings.truncate(FINDINGS_MAX);
        if let Err(error) = self.remember(tenant, LedgerVerification { at: at.into(), clean, findings }).await {
            tracing::warn!(error.code = error.code(), %error, clean, "the result of a ledger check could not be saved");
        }
        checked
    }

    async fn remember(&self, tenant: &TenantId, verified: LedgerVerification) -> Result<(), port::Error> {
        let value = serde_json::to_value(&verified).expect("findings are texts");
        let changes = vec![RegisterChange::put(RegisterKind::Mark, MARK, value)];
        let changes = RegisterWrite { tenant: tenant.clone(), at: self.now(), changes, record: None };
        self.ports.register.write(changes).await?;
        self.alerts_changed.send_replace(());
        Ok(())
    }

    /// The result of the last verification.
    pub async fn verified(&self, tenant: &TenantId) -> Result<Option<LedgerVerification>, port::Error> {
        let note = self.ports.register.find(tenant, RegisterKind::Mark, MARK).await?;
        // An unreadable result counts as none: the ledger is verified again.
        Ok(note.and_then(|note| serde_json::from_value((*note.value).clone()).ok()))
    }
}
