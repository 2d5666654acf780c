//! The register of a real store, which signals every write, and fails when the test wants it to.

use rutter_core::id::TenantId;
use rutter_core::port::query::{ListPage, Pagination};
use rutter_core::port::register::{Register, RegisterItem, RegisterKind, RegisterWrite};
use rutter_core::port::{Error, StoreFuture};
use rutter_store::SqliteStore;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

pub struct TestRegister {
    store: Arc<SqliteStore>,
    writes: watch::Sender<u64>,
    /// So many writes are carried out and answered as unknown.
    pub answers_lost: AtomicU64,
    /// After this many more writes all are refused.
    pub writes_left: Mutex<Option<u64>>,
}

impl TestRegister {
    pub fn new(store: SqliteStore) -> TestRegister {
        TestRegister {
            store: Arc::new(store),
            writes: watch::Sender::new(0),
            answers_lost: AtomicU64::new(0),
            writes_left: Mutex::new(None),
        }
    }

    pub fn store(&self) -> Arc<SqliteStore> {
        Arc::clone(&self.store)
    }

    pub fn writes(&self) -> watch::Receiver<u64> {
        self.writes.subscribe()
    }

    fn is_refused(&self) -> bool {
        match &mut *self.writes_left.lock().unwrap() {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        }
    }
}

impl Register for TestRegister {
    fn find(&self, tenant: &TenantId, kind: RegisterKind, id: &str) -> StoreFuture<'_, Option<RegisterItem>> {
        self.store.find(tenant, kind, id)
    }

    fn list(&self, tenant: &TenantId, kind: RegisterKind, page: Pagination) -> StoreFuture<'_, ListPage<RegisterItem>> {
        self.store.list(tenant, kind, page)
    }

    fn count(&self, tenant: &TenantId, kind: RegisterKind) -> StoreFuture<'_, u64> {
        self.store.count(tenant, kind)
    }

    fn tenants(&self, kind: RegisterKind) -> StoreFuture<'_, Vec<TenantId>> {
        self.store.tenants(kind)
    }

    fn write(&self, changes: RegisterWrite) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            if self.is_refused() {
                return Err(Error::DiskFull("the test says so".to_owned()));
            }
            let written = Register::write(&*self.store, changes).await;
            self.writes.send_modify(|count| *count += 1);
            let is_lost =
                self.answers_lost.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            match is_lost {
                Ok(_) => Err(Error::Unknown("the test says so".to_owned())),
                Err(_) => written,
            }
        })
    }
}
