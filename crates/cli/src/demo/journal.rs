//! The demo's journals in a real store: written before anything is called, read back after a crash, verified.

use crate::clock;
use anyhow::{Context, bail};
use rutter_core::execution::row::Row;
use rutter_core::execution::{Execution, Identity};
use rutter_core::id::{ExecutionId, PlanId, TenantId, WorkerId};
use rutter_core::journal::chain::Chain;
use rutter_core::journal::event::Record;
use rutter_core::journal::payload::Salt;
use rutter_core::plan::Plan;
use rutter_core::port::journal::{
    Append, Claim, Journal as _, Lease, Loaded, NewPlan, Opened, Opening, Sealed,
};
use rutter_core::time::Timestamp;
use rutter_store::{Options, Store, wait};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// The one commands take when no other is named.
const TENANT: &str = "default";
const FREE_BYTES_MIN: u64 = 16 << 20;
const HEAD_START_MS: i64 = 60_000;
/// More executions than are ever due at once.
const CLAIMED_MAX: u32 = 100;

pub(crate) fn tenant() -> TenantId {
    TenantId::new(TENANT)
}

/// The database of all scenes.
#[derive(Debug)]
pub(crate) struct Book {
    directory: PathBuf,
    /// There is none only while a process dies and the next one begins.
    store: RefCell<Option<Store>>,
    /// The demo's own clock, which jumps over the time until a retry.
    time: Cell<Timestamp>,
}

impl Book {
    pub(crate) fn open(directory: &Path) -> anyhow::Result<Rc<Book>> {
        // Begins a little ago, so that nothing has happened in the future when the demo is over.
        let time = Cell::new(Timestamp(clock::now().0 - HEAD_START_MS));
        let book = Book { directory: directory.to_owned(), store: RefCell::new(None), time };
        book.open_again()?;
        Ok(Rc::new(book))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.time.get()
    }

    /// Lets time pass until then; it never goes back.
    pub(crate) fn pass_until(&self, when: Timestamp) {
        self.time.set(self.now().max(when));
    }

    /// Forgets everything that is not on the disk.
    fn open_again(&self) -> anyhow::Result<()> {
        let mut store = self.store.borrow_mut();
        // The old one goes first: one process owns a database at a time.
        *store = None;
        // Nothing here is worth keeping room for.
        let options = Options::new(&self.directory, Arc::new(clock::now));
        *store = Some(Store::open(Options { reserve_bytes: 0, free_bytes_min: FREE_BYTES_MIN, ..options })?);
        Ok(())
    }

    /// Ends the demo's use of the database; everything is on the disk and signed when this returns.
    pub(crate) fn close(&self) {
        *self.store.borrow_mut() = None;
    }

    fn with<T>(&self, work: impl FnOnce(&Store) -> Result<T, rutter_core::port::Error>) -> anyhow::Result<T> {
        let store = self.store.borrow();
        Ok(work(store.as_ref().context("the database is closed")?)?)
    }
}

/// The journal of one execution.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) book: Rc<Book>,
    identity: Identity,
    chain: Chain,
    lease: Lease,
}

impl Journal {
    /// Keeps the plan and begins the journal.
    pub(crate) fn open(
        book: &Rc<Book>,
        plan: &Arc<Plan>,
        execution: &Execution,
        opened: &Record,
    ) -> anyhow::Result<Journal> {
        let identity = execution.identity().clone();
        let id = PlanId::new(&identity.execution.as_str().replacen("exec_", "plan_", 1));
        let Record { at, actor, .. } = opened.clone();
        let tenant = identity.tenant.clone();
        let new = NewPlan { tenant, id: id.clone(), plan: plan.clone(), expected: None, actor, at };
        book.with(|store| wait(store.save(new)))?;
        let mut chain = Chain::new(identity.tenant.clone(), identity.execution.clone());
        let opening = Opening {
            identity: identity.clone(),
            plan: id,
            request: None,
            worker: Some(WorkerId::new("demo")),
            entries: seal(&mut chain, std::slice::from_ref(opened))?,
            row: execution.row(),
        };
        match book.with(|store| wait(store.open(opening)))? {
            Opened::New { lease: Some(lease) } => Ok(Journal { book: book.clone(), identity, chain, lease }),
            answer => bail!("a new journal was expected: {answer:?}"),
        }
    }

    pub(crate) fn entries(&self) -> u64 {
        self.chain.head().seq
    }

    /// Seals the records and appends them in one piece; they are on the disk when this returns.
    pub(crate) fn append(&mut self, records: &[Record], row: Row) -> anyhow::Result<()> {
        let expected = self.chain.head();
        let entries = seal(&mut self.chain, records)?;
        let append = Append { lease: self.lease.clone(), expected, entries, row, consumed: Vec::new() };
        self.book.with(|store| wait(store.append(append)))?;
        Ok(())
    }

    /// Signs what was written so far, and rebuilds the execution from what is on the disk and nothing else.
    pub(crate) fn sign_and_replay(&self) -> anyhow::Result<Execution> {
        self.book.with(|store| wait(store.checkpoint(&self.identity.tenant)))?;
        let loaded = self.load()?;
        Ok(Execution::replay(self.identity.clone(), &loaded.records)?)
    }

    /// The same for a process that is to go on writing: what was in memory is forgotten.
    pub(crate) fn recover(&mut self) -> anyhow::Result<Execution> {
        self.book.open_again()?;
        let worker = WorkerId::new("demo-again");
        let claim = Claim { worker, now: self.book.now(), limit: CLAIMED_MAX };
        let leases = self.book.with(|store| wait(store.claim(claim)))?;
        let lease = leases.into_iter().find(|lease| lease.identity == self.identity);
        self.lease = lease.context("the execution was not due after the crash")?;
        let loaded = self.load()?;
        let Identity { tenant, execution } = self.identity.clone();
        self.chain = Chain::resume(tenant, execution, loaded.head);
        Ok(Execution::replay(self.identity.clone(), &loaded.records)?)
    }

    fn load(&self) -> anyhow::Result<Loaded> {
        self.book.with(|store| wait(store.load(&self.identity)))
    }
}

pub(crate) fn identity(name: &str) -> Identity {
    Identity { tenant: tenant(), execution: ExecutionId::new(&format!("exec_{name}")) }
}

fn seal(chain: &mut Chain, records: &[Record]) -> anyhow::Result<Vec<Sealed>> {
    let mut failed = None;
    let mut salts = || Salt(random().map_err(|error| failed = Some(error)).unwrap_or_default());
    let sealed: Result<Vec<Sealed>, _> =
        records.iter().map(|record| Sealed::seal(chain, record, &mut salts)).collect();
    match failed {
        Some(error) => Err(error),
        None => Ok(sealed?),
    }
}

/// Bytes nobody can guess, for salts and names.
pub(crate) fn random<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    let read = |bytes: &mut [u8]| -> io::Result<()> { File::open("/dev/urandom")?.read_exact(bytes) };
    read(&mut bytes).context("the demo needs /dev/urandom for its salts")?;
    Ok(bytes)
}
