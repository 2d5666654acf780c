//! Journals in a real store: written before anything is called, and read back after a crash.

use rutter_core::execution::row::Row;
use rutter_core::execution::{Execution, Identity};
use rutter_core::id::{ExecutionId, PlanId, TenantId, WorkerId};
use rutter_core::journal::chain::Chain;
use rutter_core::journal::event::Record;
use rutter_core::journal::payload::Salt;
use rutter_core::plan::Plan;
use rutter_core::port::journal::{Append, Claim, Journal as _, Lease, NewPlan, Opened, Opening, Sealed};
use rutter_core::port::proof::Proof;
use rutter_core::time::Timestamp;
use rutter_store::{Options, Store, wait};
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

/// The one commands take when no other is named.
pub fn tenant() -> TenantId {
    TenantId::new("default")
}

pub fn identity(name: &str) -> Identity {
    Identity { tenant: tenant(), execution: ExecutionId::new(&format!("exec_{name}")) }
}

/// The database of all executions.
#[derive(Debug)]
pub struct Book {
    directory: PathBuf,
    /// There is none only while a process dies and the next one begins.
    store: RefCell<Option<Store>>,
    /// A clock of its own, which jumps over the time until a retry.
    time: Cell<Timestamp>,
}

impl Book {
    pub fn open(directory: &Path) -> Rc<Book> {
        // Begins a little ago, so that nothing has happened in the future when all is written.
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

    /// Forgets everything that is not on the disk.
    fn open_again(&self) {
        // The old one goes first: one process owns a database at a time.
        self.close();
        let options = Options::new(&self.directory, Arc::new(now));
        let options = Options { reserve_bytes: 0, free_bytes_min: FREE_BYTES_MIN, ..options };
        *self.store.borrow_mut() = Some(Store::open(options).unwrap());
    }

    /// Everything is on the disk and signed when this returns.
    pub fn close(&self) {
        *self.store.borrow_mut() = None;
    }

    fn with<T>(&self, work: impl FnOnce(&Store) -> Result<T, rutter_core::port::Error>) -> T {
        work(self.store.borrow().as_ref().unwrap()).unwrap()
    }
}

/// The journal of one execution.
#[derive(Debug)]
pub struct Journal {
    pub book: Rc<Book>,
    identity: Identity,
    chain: Chain,
    lease: Lease,
}

impl Journal {
    /// Keeps the plan and begins the journal.
    pub fn open(book: &Rc<Book>, plan: &Arc<Plan>, execution: &Execution, opened: &Record) -> Journal {
        let identity = execution.identity().clone();
        let id = PlanId::new(&identity.execution.as_str().replacen("exec_", "plan_", 1));
        let Record { at, actor, .. } = opened.clone();
        let tenant = identity.tenant.clone();
        let new = NewPlan { tenant, id: id.clone(), plan: plan.clone(), expected: None, actor, at };
        book.with(|store| wait(store.save(new)));
        let mut chain = Chain::new(identity.tenant.clone(), identity.execution.clone());
        let opening = Opening {
            identity: identity.clone(),
            plan: id,
            request: None,
            worker: Some(WorkerId::new("demo")),
            entries: seal(&mut chain, std::slice::from_ref(opened)),
            row: execution.row(),
        };
        match book.with(|store| wait(store.open(opening))) {
            Opened::New { lease: Some(lease) } => Journal { book: book.clone(), identity, chain, lease },
            answer => panic!("a new journal was expected: {answer:?}"),
        }
    }

    /// Seals the records and appends them in one piece; they are on the disk when this returns.
    pub fn append(&mut self, records: &[Record], row: Row) {
        let expected = self.chain.head();
        let entries = seal(&mut self.chain, records);
        let lease = self.lease.clone();
        let append = Append { lease, expected, entries, row, consumed: Vec::new(), forgotten: Vec::new() };
        self.book.with(|store| wait(store.append(append)));
    }

    pub fn sign(&self) {
        self.book.with(|store| wait(store.sign(&self.identity.tenant)));
    }

    /// What a new process makes of the database, having nothing else.
    pub fn recover(&mut self) -> Execution {
        self.book.open_again();
        let worker = WorkerId::new("demo-again");
        let claim = Claim { worker, now: self.book.now(), limit: CLAIMED_MAX };
        let leases = self.book.with(|store| wait(store.claim(claim)));
        let lease = leases.into_iter().find(|lease| lease.identity == self.identity);
        self.lease = lease.expect("the execution is due after the crash");
        let loaded = self.book.with(|store| wait(store.load(&self.identity)));
        let Identity { tenant, execution } = self.identity.clone();
        self.chain = Chain::resume(tenant, execution, loaded.head);
        Execution::replay(self.identity.clone(), &loaded.records).unwrap()
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp(i64::try_from(since.as_millis()).unwrap())
}

fn seal(chain: &mut Chain, records: &[Record]) -> Vec<Sealed> {
    let mut salts = || Salt(random());
    records.iter().map(|record| Sealed::seal(chain, record, &mut salts).unwrap()).collect()
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    bytes
}
