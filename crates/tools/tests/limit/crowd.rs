//! Applicants that count how often they were woken, and settings to try them on.

use rutter_core::id::{TenantId, ToolName};
use rutter_core::port::tools::{Admission, Applicant, Berth};
use rutter_tools::config::{Common, Limits, Rate, ToolSettings};
use rutter_tools::limit::Quay;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub struct Somebody {
    tenant: TenantId,
    priority: i32,
    woken: AtomicUsize,
    /// Who was woken, in order, by name.
    log: Log,
    name: String,
}

pub type Log = Arc<Mutex<Vec<String>>>;

impl Applicant for Somebody {
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

impl Somebody {
    pub fn woken(&self) -> usize {
        self.woken.load(Ordering::SeqCst)
    }
}

/// Makes applicants that share a log.
#[derive(Default)]
pub struct Crowd {
    pub log: Log,
}

impl Crowd {
    pub fn one(&self, tenant: &str, priority: i32, name: &str) -> Arc<Somebody> {
        Arc::new(Somebody {
            tenant: TenantId::new(tenant),
            priority,
            woken: AtomicUsize::new(0),
            log: Arc::clone(&self.log),
            name: name.to_owned(),
        })
    }

    pub fn many(&self, tenant: &str, count: usize) -> Vec<Arc<Somebody>> {
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

pub fn admit(quay: &Quay, name: &str, somebody: &Arc<Somebody>) -> Admission {
    let applicant: Arc<dyn Applicant> = Arc::<Somebody>::clone(somebody);
    quay.admit(&tool(name), &applicant)
}

/// The berth, where there is room.
pub fn berth(quay: &Quay, name: &str, somebody: &Arc<Somebody>) -> Option<Berth> {
    match admit(quay, name, somebody) {
        Admission::Granted(berth) => Some(berth),
        Admission::Later => None,
        Admission::After(pause) => panic!("sent away for {pause}"),
    }
}

pub fn limits(calls: u32, calls_per_tenant: u32, calls_per_server: u32) -> Limits {
    Limits { calls, calls_per_tenant, calls_per_server, ..Limits::default() }
}

pub fn plain(calls: u32, calls_per_tenant: u32, calls_per_server: u32) -> Quay {
    Quay::new(&limits(calls, calls_per_tenant, calls_per_server), BTreeMap::new())
}

/// The server `s`, with settings of its own and for its tool `t`.
pub fn settings(rate: Option<Rate>, tool: ToolSettings) -> BTreeMap<String, Common> {
    let tools = BTreeMap::from([("t".to_owned(), tool)]);
    BTreeMap::from([("s".to_owned(), Common { rate, tools, ..Common::default() })])
}
