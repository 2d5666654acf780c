//! Random load: no limit is ever exceeded, no waiter with free capacity stays queued, and all are served.

use crate::limit::crowd::{Crowd, TestWaiter, admit, limits, tool};
use rutter_core::port::tools::{Admission, CallPermit, PermitWaiter};
use rutter_tools::config::{ServerSettings, ToolSettings};
use rutter_tools::limit::CallLimiter;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A small generator, so that a seed reproduces a failure.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

const TOOLS: [&str; 5] = ["s.t", "s.u", "r.t", "r.u", "q.t"];
const TENANTS: [&str; 3] = ["a", "b", "c"];
const CALLS: usize = 5;
const PER_TENANT: usize = 3;
const PER_SERVER: usize = 2;
const PER_TOOL: usize = 1;

/// A permit, with what it counts against.
struct Held {
    tool: &'static str,
    tenant: &'static str,
    _permit: CallPermit,
}

fn count(held: &[Held], of: impl Fn(&Held) -> bool) -> usize {
    held.iter().filter(|held| of(held)).count()
}

fn has_room(held: &[Held], tool: &str, tenant: &str) -> bool {
    held.len() < CALLS
        && count(held, |held| held.tenant == tenant) < PER_TENANT
        && count(held, |held| held.tool[..1] == tool[..1]) < PER_SERVER
        && (tool != "s.t" || count(held, |held| held.tool == tool) < PER_TOOL)
}

fn run_seed(seed: u64) {
    let mut dice = Dice(seed);
    let narrow = ToolSettings { concurrency: Some(PER_TOOL as u32), ..ToolSettings::default() };
    let common = ServerSettings { tools: BTreeMap::from([("t".to_owned(), narrow)]), ..ServerSettings::default() };
    let limits = limits(CALLS as u32, PER_TENANT as u32, PER_SERVER as u32);
    let limiter = CallLimiter::new(&limits, BTreeMap::from([("s".to_owned(), common)]));
    let crowd = Crowd::default();
    let mut held: Vec<Held> = Vec::new();
    let mut standing: HashMap<String, (&'static str, &'static str, Arc<TestWaiter>)> = HashMap::new();
    let mut arrived = 0;
    while arrived < 300 || !held.is_empty() || !standing.is_empty() {
        if arrived < 300 && dice.roll(2) == 0 {
            let (name, tool, tenant) =
                (arrived.to_string(), TOOLS[dice.roll(TOOLS.len())], TENANTS[dice.roll(TENANTS.len())]);
            let waiter = crowd.one(tenant, dice.roll(3) as i32, &name);
            arrived += 1;
            match admit(&limiter, tool, &waiter) {
                Admission::Granted(permit) => {
                    assert!(has_room(&held, tool, tenant), "seed {seed}: {tool} for {tenant} exceeds a limit");
                    held.push(Held { tool, tenant, _permit: permit });
                }
                _ => {
                    assert!(!has_room(&held, tool, tenant), "seed {seed}: {tool} for {tenant} was free");
                    standing.insert(name, (tool, tenant, waiter));
                }
            }
        } else if !held.is_empty() {
            held.swap_remove(dice.roll(held.len()));
        }
        for name in crowd.woken() {
            let (tool, tenant, waiter) = standing.remove(&name).expect("only queued waiters are woken");
            assert!(has_room(&held, tool, tenant), "seed {seed}: {tool} was granted to {tenant} beyond a limit");
            let Admission::Granted(call_permit) = admit(&limiter, tool, &waiter) else {
                panic!("seed {seed}: {name} was woken for nothing");
            };
            held.push(Held { tool, tenant, _permit: call_permit });
        }
        for (tool, tenant, _) in standing.values() {
            assert!(!has_room(&held, tool, tenant), "seed {seed}: {tenant} is queued for {tool}, which is free");
        }
        assert_eq!((limiter.occupied() as usize, limiter.queued()), (held.len(), standing.len()), "seed {seed}");
    }
}

#[tokio::test]
async fn no_limit_is_exceeded_and_no_waiter_is_forgotten() {
    for seed in 0..60 {
        run_seed(seed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_threads_share_few_permits() {
    let limiter = Arc::new(CallLimiter::new(&limits(3, 2, 3), BTreeMap::new()));
    let tasks: Vec<_> = (0..32)
        .map(|at| {
            let (shared, name) = (Arc::clone(&limiter), tool("s.t"));
            tokio::spawn(async move {
                let tenant = rutter_core::id::TenantId::new(if at % 2 == 0 { "a" } else { "b" });
                let waiter = Arc::new(NotifiedWaiter { tenant, turn: tokio::sync::Notify::new() });
                let applicant: Arc<dyn PermitWaiter> = Arc::<NotifiedWaiter>::clone(&waiter);
                for _ in 0..200 {
                    let permit = loop {
                        match shared.admit(&name, &applicant) {
                            Admission::Granted(call_permit) => break call_permit,
                            _ => waiter.turn.notified().await,
                        }
                    };
                    assert!(shared.occupied() <= 3);
                    tokio::task::yield_now().await;
                    drop(permit);
                }
            })
        })
        .collect();
    let all = futures::future::try_join_all(tasks);
    tokio::time::timeout(std::time::Duration::from_secs(30), all).await.expect("no task waits for ever").unwrap();
    assert_eq!((limiter.occupied(), limiter.queued()), (0, 0));
}

struct NotifiedWaiter {
    tenant: rutter_core::id::TenantId,
    turn: tokio::sync::Notify,
}

impl PermitWaiter for NotifiedWaiter {
    fn tenant(&self) -> &rutter_core::id::TenantId {
        &self.tenant
    }

    fn priority(&self) -> i32 {
        0
    }

    fn wake(&self) {
        self.turn.notify_one();
    }
}
