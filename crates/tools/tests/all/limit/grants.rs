//! A freed permit is reserved for its waiter, for a while.

use crate::limit::crowd::{Crowd, acquire, plain};
use rutter_core::id::{TenantId, ToolName};
use rutter_core::port::tools::{Admission, CallPermit, PermitWaiter};
use rutter_tools::limit::CallLimiter;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::time::{advance, sleep};

#[tokio::test(start_paused = true)]
async fn a_granted_permit_cannot_be_taken_by_another_waiter() {
    let crowd = Crowd::default();
    let limiter = plain(1, 1, 1);
    let first = acquire(&limiter, "s.t", &crowd.one("a", 0, "first")).unwrap();
    let second = crowd.one("a", 0, "second");
    assert!(acquire(&limiter, "s.t", &second).is_none());
    drop(first);
    for at in 0..20 {
        let newcomer = crowd.one("b", 1_000, &format!("newcomer {at}"));
        assert!(acquire(&limiter, "s.t", &newcomer).is_none());
    }
    advance(Duration::from_millis(990)).await;
    assert!(acquire(&limiter, "s.t", &second).is_some());
}

#[tokio::test(start_paused = true)]
async fn an_unclaimed_grant_goes_to_the_next_after_a_second() {
    let crowd = Crowd::default();
    let limiter = plain(1, 1, 1);
    let first = acquire(&limiter, "s.t", &crowd.one("a", 0, "first")).unwrap();
    let waiters = crowd.many("a", 3);
    assert!(waiters.iter().all(|waiter| acquire(&limiter, "s.t", waiter).is_none()));
    drop(first);
    assert_eq!(crowd.woken(), ["a0"]);
    sleep(Duration::from_millis(990)).await;
    assert_eq!(crowd.woken(), Vec::<String>::new());
    sleep(Duration::from_millis(20)).await;
    assert_eq!(crowd.woken(), ["a1"], "by time alone");
    assert!(acquire(&limiter, "s.t", &waiters[0]).is_none(), "too late: it is queued again");
    let held = acquire(&limiter, "s.t", &waiters[1]).unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(crowd.woken(), Vec::<String>::new(), "a claimed permit does not expire");
    drop(held);
    assert_eq!(crowd.woken(), ["a2"]);
}

#[tokio::test(start_paused = true)]
async fn an_unclaimed_permit_is_free_again() {
    let crowd = Crowd::default();
    let limiter = plain(1, 1, 1);
    let first = acquire(&limiter, "s.t", &crowd.one("a", 0, "first")).unwrap();
    let second = crowd.one("a", 0, "second");
    assert!(acquire(&limiter, "s.t", &second).is_none());
    drop(first);
    assert_eq!(limiter.occupied(), 1);
    sleep(Duration::from_millis(1_010)).await;
    assert_eq!(limiter.occupied(), 0);
}

#[tokio::test(start_paused = true)]
async fn dropped_waiters_are_skipped_at_once() {
    let crowd = Crowd::default();
    let limiter = plain(1, 1, 1);
    let first = acquire(&limiter, "s.t", &crowd.one("a", 0, "first")).unwrap();
    let mut waiters = crowd.many("a", 1_000);
    assert!(waiters.iter().all(|waiter| acquire(&limiter, "s.t", waiter).is_none()));
    let last = waiters.pop().unwrap();
    drop(waiters);
    drop(first);
    assert_eq!(crowd.woken(), ["a999"]);
    assert!(acquire(&limiter, "s.t", &last).is_some());
    assert_eq!(limiter.queued(), 0);
}

/// Asks again from within `wake`.
struct Eager {
    tenant: TenantId,
    limiter: Arc<CallLimiter>,
    itself: Weak<Eager>,
    given: Mutex<Vec<CallPermit>>,
    rest: Mutex<u32>,
}

impl PermitWaiter for Eager {
    fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    fn priority(&self) -> i32 {
        0
    }

    fn wake(&self) {
        let itself: Arc<dyn PermitWaiter> = self.itself.upgrade().unwrap();
        if let Admission::Granted(permit) = self.limiter.admit(&ToolName::new("s.t"), &itself) {
            self.given.lock().unwrap().push(permit);
            *self.rest.lock().unwrap() -= 1;
        }
    }
}

#[tokio::test]
async fn a_waiter_may_ask_from_within_wake() {
    let crowd = Crowd::default();
    let limiter = Arc::new(plain(1, 1, 1));
    let first = acquire(&limiter, "s.t", &crowd.one("a", 0, "first")).unwrap();
    let eager = Arc::new_cyclic(|itself| Eager {
        tenant: TenantId::new("a"),
        limiter: Arc::clone(&limiter),
        itself: Weak::clone(itself),
        given: Mutex::default(),
        rest: Mutex::new(1),
    });
    let applicant: Arc<dyn PermitWaiter> = Arc::<Eager>::clone(&eager);
    assert!(matches!(limiter.admit(&ToolName::new("s.t"), &applicant), Admission::Later));
    drop(first);
    assert_eq!(*eager.rest.lock().unwrap(), 0);
    assert_eq!(eager.given.lock().unwrap().len(), 1);
}
