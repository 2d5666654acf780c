//! Journals in a real store: written before anything is called, and read back after a crash.

use rutter_core::execution::row::ExecutionProjection;
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::id::{ExecutionId, PlanId, TenantId, WorkerId};
use rutter_core::journal::chain::HashChain;
use rutter_core::journal::event::EventRecord;
use rutter_core::journal::payload::PayloadSalt;
use rutter_core::plan::Plan;
use rutter_core::port::journal::{
    AppendRequest, ClaimRequest, ExecutionOpening, Journal as _, Lease, NewRevision, OpenOutcome, RevisionScope,
    SealedEntry,
};
use rutter_core::port::proof::LedgerProof;
use rutter_core::time::Timestamp;
use rutter_store::{SqliteOptions, SqliteStore, wait};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

const FREE_BYTES_MIN: u64 = 16 << 20;
const HEAD_START_MS: i64 = 60_000;
/// More executions than are ever due at once.
const CLAIMED_MAX: u32 = 100;

/// The default tenant of commands.
pub fn tenant() -> TenantId {
    TenantId::new("default")
}

pub fn identity(name: &str) -> ExecutionIdentity {
    ExecutionIdentity { tenant: tenant(), execution: ExecutionId::new(&format!("exec_{name}")) }
}

/// The database of all executions.
#[derive(Debug)]
pub struct Book {
    directory: PathBuf,
    /// `None` only while a process dies and the next one begins.
    store: RefCell<Option<SqliteStore>>,
    /// Its own clock, which skips the time until a retry.
    time: Cell<Timestamp>,
}

impl Book {
    pub fn open(directory: &Path) -> Rc<Book> {
        // Begins in the past, so that no entry is in the future when all is written.
        let time = Cell::new(Timestamp(now().0 - HEAD_START_MS));
        let book = Book { directory: directory.to_owned(), store: RefCell::new(None), time };
        book.open_again();
        Rc::new(book)
    }

    pub fn now(&self) -> Timestamp {
        self.time.get()
    }

    /// Lets time pass until then; it never goes back.
    pub fn pass_until(&self, when: Timestamp) {
        self.time.set(self.now().max(when));
    }

    /// Drops everything that is not on disk.
    fn open_again(&self) {
        // Drop the old one first: one process owns a database at a time.
        self.close();
        let options = SqliteOptions::new(&self.directory, Arc::new(now));
        let options = SqliteOptions { reserve_bytes: 0, free_bytes_min: FREE_BYTES_MIN, ..options };
        *self.store.borrow_mut() = Some(SqliteStore::open(options).unwrap());
    }

    /// Everything is on disk and signed when this returns.
    pub fn close(&self) {
        *self.store.borrow_mut() = None;
    }

    fn with<T>(&self, work: impl FnOnce(&SqliteStore) -> Result<T, rutter_core::port::Error>) -> T {
        work(self.store.borrow().as_ref().unwrap()).unwrap()
    }
}

/// The journal of one execution.
#[derive(Debug)]
pub struct Journal {
    pub book: Rc<Book>,
    identity: ExecutionIdentity,
    chain: HashChain,
    lease: Lease,
}

impl Journal {
    /// Saves the plan and begins the journal.
    pub fn open(book: &Rc<Book>, plan: &Arc<Plan>, execution: &Execution, opened: &EventRecord) -> Journal {
        let identity = execution.identity().clone();
        let id = PlanId::new(&identity.execution.as_str().replacen("exec_", "plan_", 1));
        let EventRecord { at, actor, .. } = opened.clone();
        let tenant = identity.tenant.clone();
        let new = NewRevision {
            tenant,
            id: id.clone(),
            plan: plan.clone(),
            expected: None,
            scope: RevisionScope::Plan,
            actor,
            at,
        };
        book.with(|store| wait(store.save(new)));
        let mut chain = HashChain::new(identity.tenant.clone(), identity.execution.clone());
        let opening = ExecutionOpening {
            identity: identity.clone(),
            plan: id,
            request: None,
            worker: Some(WorkerId::new("demo")),
            entries: seal(&mut chain, std::slice::from_ref(opened)),
            row: execution.row(),
        };
        match book.with(|store| wait(store.open(opening))) {
            OpenOutcome::New { lease: Some(lease) } => Journal { book: book.clone(), identity, chain, lease },
            answer => panic!("a new journal was expected: {answer:?}"),
        }
    }

    /// Seals the records and appends them atomically; they are on disk when this returns.
    pub fn append(&mut self, records: &[EventRecord], row: ExecutionProjection) {
        let expected = self.chain.head();
        let entries = seal(&mut self.chain, records);
        let lease = self.lease.clone();
        let append =
            AppendRequest { lease, expected, entries, row, decided_commands: Vec::new(), refused_keys: Vec::new() };
        self.book.with(|store| wait(store.append(append)));
    }

    pub fn sign(&self) {
        self.book.with(|store| wait(store.sign(&self.identity.tenant)));
    }

    /// The execution as a new process recovers it from the database.
    pub fn recover(&mut self) -> Execution {
        self.book.open_again();
        let worker = WorkerId::new("demo-again");
        let claim = ClaimRequest { worker, now: self.book.now(), limit: CLAIMED_MAX };
        let leases = self.book.with(|store| wait(store.claim(claim)));
        let lease = leases.into_iter().find(|lease| lease.identity == self.identity);
        self.lease = lease.expect("the execution is due after the crash");
        let loaded = self.book.with(|store| wait(store.load(&self.identity)));
        let ExecutionIdentity { tenant, execution } = self.identity.clone();
        self.chain = HashChain::resume(tenant, execution, loaded.head);
        Execution::replay(self.identity.clone(), &loaded.records).unwrap()
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp(i64::try_from(since.as_millis()).unwrap())
}

fn seal(chain: &mut HashChain, records: &[EventRecord]) -> Vec<SealedEntry> {
    let mut salts = || PayloadSalt(random());
    records.iter().map(|record| SealedEntry::seal(chain, record, &mut salts).unwrap()).collect()
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    bytes
}
