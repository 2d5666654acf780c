//! The check of a whole ledger, once a day and when somebody asks; what it found is remembered.

use super::Watch;
use super::moment::Moment;
use crate::fault::Fault;
use rutter_core::id::TenantId;
use rutter_core::port;
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
    /// Checks the ledger from beginning to end and remembers what was found. That may take a while.
    pub async fn verify(&self, tenant: &TenantId) -> Result<Verified, Fault> {
        let at = self.now();
        let (clean, mut findings) = match self.ports.proof.verify(tenant).await {
            Ok(checked) => {
                let verdict = std::iter::once(checked.verdict.to_string());
                (checked.is_clean(), verdict.chain(checked.rows).collect::<Vec<String>>())
            }
            Err(port::Error::Corrupt(why)) => (false, vec![why]),
            Err(error) => return Err(error.into()),
        };
        findings.truncate(FINDINGS_MAX);
        let verified = Verified { at: at.into(), clean, findings };
        let value = serde_json::to_value(&verified).expect("findings are texts");
        let changes = vec![Change::put(Kind::Mark, MARK, value)];
        let changes = Changes { tenant: tenant.clone(), at: self.now(), changes, record: None };
        self.ports.register.write(changes).await?;
        self.look_again.send_replace(());
        Ok(verified)
    }

    /// What the last check found.
    pub async fn verified(&self, tenant: &TenantId) -> Result<Option<Verified>, port::Error> {
        let note = self.ports.register.find(tenant, Kind::Mark, MARK).await?;
        // One that cannot be read is as good as none: the ledger is checked anew.
        Ok(note.and_then(|note| serde_json::from_value((*note.value).clone()).ok()))
    }
}
