//! Waiters that count how often they were woken, and limiters to test them with.

use rutter_core::id::{TenantId, ToolName};
use rutter_core::port::tools::{Admission, CallPermit, PermitWaiter};
use rutter_tools::config::{CallLimits, CallRate, ServerSettings, ToolSettings};
use rutter_tools::limit::CallLimiter;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub struct TestWaiter {
    tenant: TenantId,
    priority: i32,
    woken: AtomicUsize,
    /// Who was woken, in order, by name.
    log: Log,
    name: String,
}

pub type Log = Arc<Mutex<Vec<String>>>;

impl PermitWaiter for TestWaiter {
    fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    fn priority(&self) -> i32 {
        self.priority
    }

    fn wake(&self) {
        self.woken.fetch_add(1, Ordering::SeqCst);
        self.log.lock().unwrap().push(self.name.clone());
    }
}

impl TestWaiter {
    pub fn woken(&self) -> usize {
        self.woken.load(Ordering::SeqCst)
    }
}

/// Creates waiters that share a log.
#[derive(Default)]
pub struct Crowd {
    pub log: Log,
}

impl Crowd {
    pub fn one(&self, tenant: &str, priority: i32, name: &str) -> Arc<TestWaiter> {
        Arc::new(TestWaiter {
            tenant: TenantId::new(tenant),
            priority,
            woken: AtomicUsize::new(0),
            log: Arc::clone(&self.log),
            name: name.to_owned(),
        })
    }

    pub fn many(&self, tenant: &str, count: usize) -> Vec<Arc<TestWaiter>> {
        (0..count).map(|at| self.one(tenant, 0, &format!("{tenant}{at}"))).collect()
    }

    /// Who was woken since the last time, in order.
    pub fn woken(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

pub fn tool(name: &str) -> ToolName {
    ToolName::new(name)
}

pub fn admit(limiter: &CallLimiter, name: &str, waiter: &Arc<TestWaiter>) -> Admission {
    let applicant: Arc<dyn PermitWaiter> = Arc::<TestWaiter>::clone(waiter);
    limiter.admit(&tool(name), &applicant)
}

/// The permit, if one is free.
pub fn acquire(limiter: &CallLimiter, name: &str, waiter: &Arc<TestWaiter>) -> Option<CallPermit> {
    match admit(limiter, name, waiter) {
        Admission::Granted(permit) => Some(permit),
        Admission::Later => None,
        Admission::After(pause) => panic!("told to wait for {pause}"),
        Admission::Paused(failure) => panic!("{failure}"),
    }
}

pub fn limits(calls: u32, calls_per_tenant: u32, calls_per_server: u32) -> CallLimits {
    CallLimits { calls, calls_per_tenant, calls_per_server, ..CallLimits::default() }
}

pub fn plain(calls: u32, calls_per_tenant: u32, calls_per_server: u32) -> CallLimiter {
    CallLimiter::new(&limits(calls, calls_per_tenant, calls_per_server), BTreeMap::new())
}

/// The server `s`, with settings of its own and for its tool `t`.
pub fn settings(rate: Option<CallRate>, tool: ToolSettings) -> BTreeMap<String, ServerSettings> {
    let tools = BTreeMap::from([("t".to_owned(), tool)]);
    BTreeMap::from([("s".to_owned(), ServerSettings { rate, tools, ..ServerSettings::default() })])
}
