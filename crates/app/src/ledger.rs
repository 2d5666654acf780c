//! The ledger as a whole: sign, verify, export.

use crate::app::App;
use crate::error::AppError;
use crate::principal::Principal;
use crate::rights::Operation;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::ExecutionId;
use rutter_core::journal::export::ExportLine;
use rutter_core::journal::verify::EntryReceipt;
use rutter_core::port::proof::{LedgerCheck, SignedCheckpoint, StoreHealth};
use rutter_core::port::query::{ListPage, Pagination};

impl App {
    /// Signs a checkpoint and returns its note; `None` if there is nothing new to sign.
    pub async fn sign_checkpoint(&self, caller: &Principal) -> Result<Option<String>, AppError> {
        self.require(caller, Operation::SignCheckpoint)?;
        Ok(self.proof.sign(&caller.tenant).await?)
    }

    /// Verifies the ledger from beginning to end.
    pub async fn verify_ledger(&self, caller: &Principal) -> Result<LedgerCheck, AppError> {
        self.require(caller, Operation::VerifyLedger)?;
        Ok(self.watch.verify(&caller.tenant).await?)
    }

    /// Exports the ledger, or some executions, line by line, until `each` returns false.
    pub async fn export_ledger(
        &self,
        caller: &Principal,
        executions: Option<Vec<ExecutionId>>,
        each: Box<dyn FnMut(ExportLine) -> bool + Send>,
    ) -> Result<(), AppError> {
        self.require(caller, Operation::ExportLedger)?;
        Ok(self.proof.export(&caller.tenant, executions, each).await?)
    }

    /// Signed checkpoints, newest first.
    pub async fn checkpoints(
        &self,
        caller: &Principal,
        page: Pagination,
    ) -> Result<ListPage<SignedCheckpoint>, AppError> {
        self.require(caller, Operation::Read)?;
        Ok(self.proof.checkpoints(&caller.tenant, page).await?)
    }

    /// Proves later that an entry existed: the given one, or else the last.
    pub async fn receipt(&self, identity: &ExecutionIdentity, seq: Option<u64>) -> Result<EntryReceipt, AppError> {
        Ok(self.proof.receipt(identity, seq).await?)
    }

    /// The key that verifies the signatures.
    pub async fn public_key(&self) -> Result<Option<String>, AppError> {
        Ok(self.proof.public_key().await?)
    }

    pub async fn health(&self) -> Result<StoreHealth, AppError> {
        Ok(self.proof.health().await?)
    }
}
