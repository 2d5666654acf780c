//! Read-only access to a database, to verify, export or list it while another process may own it.

use super::DATABASE;
use super::connection::DatabaseFile;
use super::export;
use super::fault;
use super::key::SigningKeyFiles;
use super::ledger::LedgerRow;
use super::load;
use super::migration;
use super::plans::PlanCache;
use super::projections;
use super::query;
use super::register;
use super::session::size_of;
use super::verify;
use rusqlite::Connection;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::journal::export::ExportLine;
use rutter_core::journal::note::VerifierKey;
use rutter_core::journal::verify::{EntryReceipt, TrustAnchors};
use rutter_core::port::Error;
use rutter_core::port::journal::LoadedExecution;
use rutter_core::port::proof::LedgerCheck;
use rutter_core::port::query::{
    EntryFilter, EntrySummary, ExecutionFilter, ExecutionSummary, ListPage, Pagination, PlanFilter, PlanSummary,
    SavedPlan,
};
use rutter_core::port::register::{RegisterItem, RegisterKind};
use std::path::{Path, PathBuf};

/// An open database that cannot be written.
#[derive(Debug)]
pub struct SqliteArchive {
    path: PathBuf,
    connection: Connection,
    plans: PlanCache,
}

/// Sizes and counts of a database, none of which needs a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseStats {
    pub schema: u64,
    pub database_bytes: u64,
    pub log_bytes: u64,
    pub free_page_bytes: u64,
    pub free_disk_bytes: u64,
    pub tenants: Vec<TenantStats>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantStats {
    pub tenant: TenantId,
    pub origin: String,
    pub entries: u64,
    /// Entries that the newest checkpoint covers.
    pub covered: u64,
    pub executions: Vec<(String, u64)>,
}

const STATUSES: &str = "select status, count from total where tenant = ?1 and count > 0 order by status";

impl SqliteArchive {
    /// Opens the database in a data directory.
    pub fn open(directory: &Path) -> Result<SqliteArchive, Error> {
        SqliteArchive::open_file(&directory.join(DATABASE))
    }

    /// Opens a database file, such as a backup.
    pub fn open_file(path: &Path) -> Result<SqliteArchive, Error> {
        if !path.exists() {
            return Err(Error::NotFound { what: "database", id: path.display().to_string() });
        }
        let connection = DatabaseFile { path: path.to_owned(), vfs: None }.reader()?;
        let found = migration::check(&connection, migration::ALL)?;
        let known = migration::ALL.len() as u64;
        if found < known {
            let advice = "run `rutter db migrate` first";
            return Err(Error::Invalid(format!(
                "the database has schema {found}, this program needs {known}: {advice}"
            )));
        }
        Ok(SqliteArchive { path: path.to_owned(), connection, plans: PlanCache::default() })
    }

    pub fn tenants(&self) -> Result<Vec<TenantId>, Error> {
        Ok(LedgerRow::all(&self.connection)?.into_iter().map(|ledger| ledger.tenant).collect())
    }

    /// Writes a whole ledger, or some executions, line by line.
    pub fn export(
        &mut self,
        tenant: &TenantId,
        executions: Option<&[ExecutionId]>,
        each: &mut dyn FnMut(ExportLine) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match executions {
            None => export::whole(&mut self.connection, tenant, each).map(|_| ()),
            Some(executions) => export::executions(&mut self.connection, tenant, executions, each),
        }
    }

    /// Checks a tenant's ledger, and with `projections` every row that is derived from it.
    pub fn verify(
        &mut self,
        tenant: &TenantId,
        trust: TrustAnchors,
        projections: bool,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<LedgerCheck, Error> {
        let mut checked = verify::whole(&mut self.connection, tenant, trust, progress)?;
        if projections
            && checked.verdict.is_clean()
            && let Some(ledger) = LedgerRow::find(&self.connection, tenant)?
        {
            checked.rows.extend(projections::integrity(&self.connection)?);
            checked.rows.extend(projections::differences(&self.connection, &ledger, &self.plans)?);
        }
        Ok(checked)
    }

    /// Entries as [`StoreQuery::entries`](rutter_core::port::query::StoreQuery::entries) lists them.
    pub fn entries(
        &mut self,
        tenant: &TenantId,
        filter: EntryFilter,
        page: &Pagination,
    ) -> Result<ListPage<EntrySummary>, Error> {
        query::entries(&mut self.connection, tenant, filter, page, &self.plans)
    }

    /// Executions as [`StoreQuery::executions`](rutter_core::port::query::StoreQuery::executions) lists them.
    pub fn executions(
        &mut self,
        tenant: &TenantId,
        filter: &ExecutionFilter,
        page: &Pagination,
    ) -> Result<ListPage<ExecutionSummary>, Error> {
        query::executions(&mut self.connection, tenant, filter, page)
    }

    /// The row of one execution.
    pub fn execution(&mut self, identity: &ExecutionIdentity) -> Result<Option<ExecutionSummary>, Error> {
        query::execution(&mut self.connection, identity)
    }

    /// One revision of a plan, the newest if none is named.
    pub fn plan(&mut self, tenant: &TenantId, id: &PlanId, revision: Option<u32>) -> Result<Option<SavedPlan>, Error> {
        query::plan(&mut self.connection, tenant, id, revision, &self.plans)
    }

    /// Plans as [`StoreQuery::plans`](rutter_core::port::query::StoreQuery::plans) lists them.
    pub fn plans(
        &mut self,
        tenant: &TenantId,
        filter: &PlanFilter,
        page: &Pagination,
    ) -> Result<ListPage<PlanSummary>, Error> {
        query::plans(&mut self.connection, tenant, filter, page)
    }

    /// Items of the register as [`Register::list`](rutter_core::port::register::Register::list) lists them.
    pub fn register(
        &mut self,
        tenant: &TenantId,
        kind: RegisterKind,
        page: &Pagination,
    ) -> Result<ListPage<RegisterItem>, Error> {
        register::page_of(&mut self.connection, tenant, kind, page)
    }

    /// Loads the whole journal of an execution and checks each entry.
    pub fn load(&mut self, identity: &ExecutionIdentity) -> Result<LoadedExecution, Error> {
        load::load(&mut self.connection, identity, &self.plans)
    }

    /// Returns a receipt, which later shows that an entry was in the ledger; for the last entry if `seq` is `None`.
    pub fn receipt(&self, identity: &ExecutionIdentity, seq: Option<u64>) -> Result<EntryReceipt, Error> {
        export::receipt(&self.connection, identity, seq)
    }

    /// The newest signed head of a tenant's ledger.
    pub fn checkpoint(&self, tenant: &TenantId) -> Result<Option<String>, Error> {
        match LedgerRow::find(&self.connection, tenant)? {
            Some(ledger) => ledger.newest_checkpoint(&self.connection),
            None => Ok(None),
        }
    }

    /// The public key beside the database.
    pub fn public_key(&self) -> Result<Option<VerifierKey>, Error> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        SigningKeyFiles::new(directory).public_key()
    }

    pub fn stats(&self) -> Result<DatabaseStats, Error> {
        let pragma = |name| -> Result<u64, Error> {
            self.connection.pragma_query_value(None, name, |row| row.get(0)).map_err(fault::of)
        };
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        let tenants = LedgerRow::all(&self.connection)?.into_iter().map(|ledger| self.tenant_stats(ledger));
        Ok(DatabaseStats {
            schema: migration::version(&self.connection)?,
            database_bytes: length(&self.path),
            log_bytes: length(Path::new(&log)),
            free_page_bytes: pragma("freelist_count")? * pragma("page_size")?,
            free_disk_bytes: super::disk::free(self.path.parent().unwrap_or(Path::new("."))).unwrap_or(0),
            tenants: tenants.collect::<Result<_, _>>()?,
        })
    }

    fn tenant_stats(&self, ledger: LedgerRow) -> Result<TenantStats, Error> {
        let statuses = || -> rusqlite::Result<Vec<(String, u64)>> {
            let mut statement = self.connection.prepare_cached(STATUSES)?;
            let rows = statement.query_map([ledger.number], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        };
        Ok(TenantStats {
            entries: size_of(&self.connection, ledger.number).map_err(fault::of)?,
            covered: ledger.covered(&self.connection)?,
            executions: statuses().map_err(fault::of)?,
            tenant: ledger.tenant,
            origin: ledger.origin,
        })
    }
}
