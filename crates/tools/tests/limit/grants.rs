//! A freed place is kept for whom it was granted to, for a while.

use crate::crowd::{Crowd, berth, plain};
use rutter_core::id::{TenantId, ToolName};
use rutter_core::port::tools::{Admission, Applicant, Berth};
use rutter_tools::limit::Quay;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::time::{advance, sleep};

#[tokio::test(start_paused = true)]
async fn nobody_can_take_a_place_that_was_granted_to_another() {
    let crowd = Crowd::default();
    let quay = plain(1, 1, 1);
    let first = berth(&quay, "s.t", &crowd.one("a", 0, "first")).unwrap();
    let second = crowd.one("a", 0, "second");
    assert!(berth(&quay, "s.t", &second).is_none());
    drop(first);
    for at in 0..20 {
        let newcomer = crowd.one("b", 1_000, &format!("newcomer {at}"));
        assert!(berth(&quay, "s.t", &newcomer).is_none());
    }
    advance(Duration::from_millis(990)).await;
    assert!(berth(&quay, "s.t", &second).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_grant_nobody_comes_for_goes_to_the_next_after_a_second() {
    let crowd = Crowd::default();
    let quay = plain(1, 1, 1);
    let first = berth(&quay, "s.t", &crowd.one("a", 0, "first")).unwrap();
    let everybody = crowd.many("a", 3);
    assert!(everybody.iter().all(|somebody| berth(&quay, "s.t", somebody).is_none()));
    drop(first);
    assert_eq!(crowd.woken(), ["a0"]);
    sleep(Duration::from_millis(990)).await;
    assert_eq!(crowd.woken(), Vec::<String>::new());
    sleep(Duration::from_millis(20)).await;
    assert_eq!(crowd.woken(), ["a1"], "without anybody asking");
    assert!(berth(&quay, "s.t", &everybody[0]).is_none(), "too late: it stands in line again");
    let held = berth(&quay, "s.t", &everybody[1]).unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(crowd.woken(), Vec::<String>::new(), "a berth that is used has no end");
    drop(held);
    assert_eq!(crowd.woken(), ["a2"]);
}

#[tokio::test(start_paused = true)]
async fn a_place_nobody_wants_is_free_again() {
    let crowd = Crowd::default();
    let quay = plain(1, 1, 1);
    let first = berth(&quay, "s.t", &crowd.one("a", 0, "first")).unwrap();
    let second = crowd.one("a", 0, "second");
    assert!(berth(&quay, "s.t", &second).is_none());
    drop(first);
    assert_eq!(quay.occupied(), 1);
    sleep(Duration::from_millis(1_010)).await;
    assert_eq!(quay.occupied(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_is_gone_is_passed_over_at_once() {
    let crowd = Crowd::default();
    let quay = plain(1, 1, 1);
    let first = berth(&quay, "s.t", &crowd.one("a", 0, "first")).unwrap();
    let mut everybody = crowd.many("a", 1_000);
    assert!(everybody.iter().all(|somebody| berth(&quay, "s.t", somebody).is_none()));
    let last = everybody.pop().unwrap();
    drop(everybody);
    drop(first);
    assert_eq!(crowd.woken(), ["a999"]);
    assert!(berth(&quay, "s.t", &last).is_some());
    assert_eq!(quay.standing(), 0);
}

/// Asks again from within `wake`, and lets go of everything it is given at once.
struct Eager {
    tenant: TenantId,
    quay: Arc<Quay>,
    itself: Weak<Eager>,
    given: Mutex<Vec<Berth>>,
    rest: Mutex<u32>,
}

impl Applicant for Eager {
    fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    fn priority(&self) -> i32 {
        0
    }

    fn wake(&self) {
        let itself: Arc<dyn Applicant> = self.itself.upgrade().unwrap();
        if let Admission::Granted(berth) = self.quay.admit(&ToolName::new("s.t"), &itself) {
            self.given.lock().unwrap().push(berth);
            *self.rest.lock().unwrap() -= 1;
        }
    }
}

#[tokio::test]
async fn whoever_is_woken_may_ask_from_there() {
    let crowd = Crowd::default();
    let quay = Arc::new(plain(1, 1, 1));
    let first = berth(&quay, "s.t", &crowd.one("a", 0, "first")).unwrap();
    let eager = Arc::new_cyclic(|itself| Eager {
        tenant: TenantId::new("a"),
        quay: Arc::clone(&quay),
        itself: Weak::clone(itself),
        given: Mutex::default(),
        rest: Mutex::new(1),
    });
    let applicant: Arc<dyn Applicant> = Arc::<Eager>::clone(&eager);
    assert!(matches!(quay.admit(&ToolName::new("s.t"), &applicant), Admission::Later));
    drop(first);
    assert_eq!(*eager.rest.lock().unwrap(), 0);
    assert_eq!(eager.given.lock().unwrap().len(), 1);
}
