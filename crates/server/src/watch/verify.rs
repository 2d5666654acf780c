//! The check of a whole ledger, once a day and when somebody asks; what it found is remembered.

use super::Watch;
use super::moment::Moment;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::proof::Checked;
use rutter_core::port::register::{Change, Changes, Kind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MARK: &str = "verify";
const FINDINGS_MAX: usize = 20;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    /// When the check began.
    pub at: Moment,
    pub clean: bool,
    /// What the check says: what is wrong, or what was looked at.
    pub findings: Vec<String>,
}

impl Watch {
    /// Checks the ledger from beginning to end and remembers what was found, so that somebody is told. That may take
    /// a while.
    pub async fn verify(&self, tenant: &TenantId) -> Result<Checked, port::Error> {
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
        if let Err(error) = self.remember(tenant, Verified { at: at.into(), clean, findings }).await {
            tracing::warn!(error.code = error.code(), %error, clean, "what a check of the ledger found is not written down");
        }
        checked
    }

    async fn remember(&self, tenant: &TenantId, verified: Verified) -> Result<(), port::Error> {
        let value = serde_json::to_value(&verified).expect("findings are texts");
        let changes = vec![Change::put(Kind::Mark, MARK, value)];
        let changes = Changes { tenant: tenant.clone(), at: self.now(), changes, record: None };
        self.ports.register.write(changes).await?;
        self.look_again.send_replace(());
        Ok(())
    }

    /// What the last check found.
    pub async fn verified(&self, tenant: &TenantId) -> Result<Option<Verified>, port::Error> {
        let note = self.ports.register.find(tenant, Kind::Mark, MARK).await?;
        // One that cannot be read is as good as none: the ledger is checked anew.
        Ok(note.and_then(|note| serde_json::from_value((*note.value).clone()).ok()))
    }
}
