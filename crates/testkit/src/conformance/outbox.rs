//! The outbox: no delivery is lost or duplicated, and the result of each is known.

use super::fixture::{ConformanceFixture, done, refused};
use super::{ConformanceCase, ConformingStore, cases};
use rutter_core::actor::Actor;
use rutter_core::id::ExecutionId;
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::limits::{DELIVERIES_MAX, DELIVERY_BYTES_MAX, REASON_BYTES_MAX};
use rutter_core::port::outbox::{
    Delivery, DeliveryAttempt, DeliveryCounts, DeliveryFilter, DeliveryFollowUp, DeliveryState, NewDelivery,
    ReaderAdvance,
};
use rutter_core::port::query::{EntryFilter, Pagination};
use rutter_core::port::{Error, StoreFuture};
use rutter_core::time::Timestamp;
use rutter_store::wait;
use std::thread;

pub(super) const CASES: &[(&str, ConformanceCase)] = cases![
    a_reader_begins_at_zero_and_continues_where_it_was,
    deliveries_come_with_the_mark_or_not_at_all,
    a_mark_does_not_move_back,
    of_many_that_move_one_mark_one_wins,
    a_destination_gets_an_event_once,
    a_delivery_is_found_as_it_was_put,
    what_is_due_longest_comes_first,
    the_next_one_due_is_known,
    what_was_delivered_is_not_due,
    what_failed_is_due_again_later,
    what_was_given_up_is_not_due,
    an_attempt_of_a_settled_delivery_changes_nothing,
    a_person_may_send_it_again,
    the_result_is_recorded_in_the_ledger_if_requested,
    every_attempt_is_retained_in_order,
    a_long_outcome_is_cut,
    deliveries_are_listed_newest_first,
    deliveries_are_counted_by_state,
    another_tenants_deliveries_are_not_found,
    what_is_old_and_settled_is_pruned,
    a_number_is_never_given_twice,
    delivery_bytes_max,
    deliveries_max,
    names_are_visible,
];

fn new(destination: &str, event: &str, due_at: i64) -> NewDelivery {
    NewDelivery {
        destination: destination.into(),
        event: event.into(),
        kind: "execution.ended".into(),
        body: format!("{{\"event\":{event:?}}}").into_bytes(),
        due_at: Timestamp(due_at),
    }
}

fn moved(from: u64, to: u64) -> Option<ReaderAdvance> {
    Some(ReaderAdvance { reader: "courier".into(), from, to })
}

fn put<'a>(stage: &ConformanceFixture<'a>, deliveries: Vec<NewDelivery>) -> StoreFuture<'a, ()> {
    stage.store.put(&stage.tenant(), None, deliveries)
}

/// One delivery that is due at once; returns its number.
fn one(stage: &ConformanceFixture<'_>, event: &str) -> u64 {
    done(put(stage, vec![new("hook_1", event, 1)]));
    list(stage, DeliveryFilter::default())[0].number
}

fn list(stage: &ConformanceFixture<'_>, filter: DeliveryFilter) -> Vec<Delivery> {
    done(stage.store.deliveries(&stage.tenant(), filter, Pagination::first(100))).items
}

fn events(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|delivery| delivery.event.as_str()).collect()
}

fn due(stage: &ConformanceFixture<'_>, now: i64) -> Vec<Delivery> {
    done(stage.store.due(Timestamp(now), &[], 100))
}

fn read(stage: &ConformanceFixture<'_>, number: u64) -> (Delivery, Vec<DeliveryAttempt>) {
    done(stage.store.delivery(&stage.tenant(), number)).expect("it was put in")
}

fn attempt(at: i64, status: Option<u16>) -> DeliveryAttempt {
    DeliveryAttempt { at: Timestamp(at), took_ms: 12, status, outcome: format!("tried at {at}") }
}

fn a_reader_begins_at_zero_and_continues_where_it_was(store: &dyn ConformingStore) {
    let (stage, other) = (ConformanceFixture::new(store), ConformanceFixture::of(store, "other"));
    let tenant = stage.tenant();
    assert_eq!(done(store.reader_position(&tenant, "courier")), 0);
    done(store.put(&tenant, moved(0, 5), Vec::new()));
    done(store.put(&tenant, moved(5, 9), vec![new("hook_1", "e1", 1)]));
    assert_eq!(done(store.reader_position(&tenant, "courier")), 9);
    assert_eq!(done(store.reader_position(&tenant, "lookout")), 0);
    assert_eq!(done(store.reader_position(&other.tenant(), "courier")), 0);
}

fn deliveries_come_with_the_mark_or_not_at_all(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    done(store.put(&stage.tenant(), moved(0, 5), Vec::new()));
    for from in [0, 4, 6] {
        let answer = store.put(&stage.tenant(), moved(from, 7), vec![new("hook_1", "e1", 1)]);
        let error = refused(answer, "store.conflict");
        assert!(matches!(error, Error::Conflict { expected, found: 5, .. } if expected == from));
    }
    assert_eq!(done(store.reader_position(&stage.tenant(), "courier")), 5);
    assert!(list(&stage, DeliveryFilter::default()).is_empty());
}

fn a_mark_does_not_move_back(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    done(store.put(&stage.tenant(), moved(0, 5), Vec::new()));
    refused(store.put(&stage.tenant(), moved(5, 4), Vec::new()), "store.invalid");
    done(store.put(&stage.tenant(), moved(5, 5), vec![new("hook_1", "e1", 1)]));
    assert_eq!(done(store.reader_position(&stage.tenant(), "courier")), 5);
    assert_eq!(list(&stage, DeliveryFilter::default()).len(), 1);
}

fn of_many_that_move_one_mark_one_wins(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let answers: Vec<Result<(), Error>> = thread::scope(|scope| {
        let put =
            |at: u64| wait(store.put(&stage.tenant(), moved(0, at + 1), vec![new("hook_1", &format!("e{at}"), 1)]));
        let threads: Vec<_> = (0..8).map(|at| scope.spawn(move || put(at))).collect();
        threads.into_iter().map(|thread| thread.join().expect("putting does not panic")).collect()
    });
    let won: Vec<usize> = (0..8).filter(|at| answers[*at].is_ok()).collect();
    assert_eq!(won.len(), 1);
    assert_eq!(done(store.reader_position(&stage.tenant(), "courier")), won[0] as u64 + 1);
    assert_eq!(events(&list(&stage, DeliveryFilter::default())), [format!("e{}", won[0])]);
}

fn a_destination_gets_an_event_once(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    done(put(&stage, vec![new("hook_1", "e1", 1), new("hook_1", "e1", 2), new("hook_2", "e1", 3)]));
    done(put(&stage, vec![new("hook_1", "e1", 4), new("hook_1", "e2", 5)]));
    let all = list(&stage, DeliveryFilter::default());
    let items: Vec<_> =
        all.iter().map(|found| (found.destination.as_str(), found.event.as_str(), found.due_at)).collect();
    let at = |time| Some(Timestamp(time));
    assert_eq!(items, [("hook_1", "e2", at(5)), ("hook_2", "e1", at(3)), ("hook_1", "e1", at(1))]);
}

fn a_delivery_is_found_as_it_was_put(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let body = vec![0, 255, b'x'];
    done(put(&stage, vec![NewDelivery { body: body.clone(), ..new("hook_1", "e1", 7) }]));
    let number = list(&stage, DeliveryFilter::default())[0].number;
    let (delivery, attempts) = read(&stage, number);
    assert_eq!((delivery.tenant, delivery.body), (stage.tenant(), body));
    assert_eq!((delivery.destination.as_str(), delivery.event.as_str()), ("hook_1", "e1"));
    assert_eq!(delivery.kind, "execution.ended");
    assert_eq!((delivery.state, delivery.attempts), (DeliveryState::Pending, 0));
    assert_eq!((delivery.due_at, delivery.last), (Some(Timestamp(7)), None));
    assert!(attempts.is_empty());
    assert_eq!(done(store.delivery(&stage.tenant(), number + 1)), None);
    assert_eq!(done(store.delivery(&stage.tenant(), u64::MAX)), None);
}

fn what_is_due_longest_comes_first(store: &dyn ConformingStore) {
    let (stage, other) = (ConformanceFixture::new(store), ConformanceFixture::of(store, "other"));
    done(put(&stage, vec![new("hook_1", "e3", 30), new("hook_1", "e1", 10)]));
    done(put(&other, vec![new("hook_1", "e2", 20)]));
    done(put(&stage, vec![new("hook_1", "e4", 10)]));
    assert_eq!(events(&due(&stage, 30)), ["e1", "e4", "e2", "e3"]);
    assert_eq!(events(&due(&stage, 29)), ["e1", "e4", "e2"]);
    assert_eq!(events(&due(&stage, 9)), Vec::<&str>::new());
    assert_eq!(events(&done(store.due(Timestamp(30), &[], 2))), ["e1", "e4"]);
    refused(store.due(Timestamp(30), &[], 0), "store.limit");
    refused(store.due(Timestamp(30), &[], 1_001), "store.limit");
    done(put(&stage, vec![new("hook\"2\"", "e5", 20), new("hook_3", "e6", 5)]));
    let besides = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        done(store.due(Timestamp(30), &names, 100))
    };
    assert_eq!(events(&besides(&["hook_1"])), ["e6", "e5"]);
    assert_eq!(events(&besides(&["hook_1", "hook\"2\"", "nobody"])), ["e6"]);
}

fn the_next_one_due_is_known(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    assert_eq!(done(store.next_due()), None);
    done(put(&stage, vec![new("hook_1", "e2", 20), new("hook_1", "e1", 10)]));
    assert_eq!(done(store.next_due()), Some(Timestamp(10)));
    for delivery in due(&stage, 100) {
        done(store.record_attempt(delivery.number, attempt(100, None), DeliveryFollowUp::Dead, None));
    }
    assert_eq!(done(store.next_due()), None);
}

fn what_was_delivered_is_not_due(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let number = one(&stage, "e1");
    done(store.record_attempt(number, attempt(2, Some(204)), DeliveryFollowUp::Delivered, None));
    assert!(due(&stage, 1_000).is_empty());
    let (delivery, attempts) = read(&stage, number);
    assert_eq!((delivery.state, delivery.attempts), (DeliveryState::Delivered, 1));
    assert_eq!((delivery.due_at, delivery.last), (None, Some(attempt(2, Some(204)))));
    assert_eq!(attempts, [attempt(2, Some(204))]);
}

fn what_failed_is_due_again_later(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let number = one(&stage, "e1");
    done(store.record_attempt(number, attempt(2, Some(500)), DeliveryFollowUp::Again { at: Timestamp(50) }, None));
    assert!(due(&stage, 49).is_empty());
    assert_eq!(due(&stage, 50)[0].last, Some(attempt(2, Some(500))));
    assert_eq!(done(store.next_due()), Some(Timestamp(50)));
}

fn what_was_given_up_is_not_due(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let number = one(&stage, "e1");
    done(store.record_attempt(number, attempt(2, None), DeliveryFollowUp::Dead, None));
    assert!(due(&stage, 1_000).is_empty());
    assert_eq!(read(&stage, number).0.state, DeliveryState::Dead);
}

fn an_attempt_of_a_settled_delivery_changes_nothing(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let number = one(&stage, "e1");
    done(store.record_attempt(number, attempt(2, Some(204)), DeliveryFollowUp::Delivered, None));
    let before = read(&stage, number);
    done(store.record_attempt(number, attempt(3, None), DeliveryFollowUp::Again { at: Timestamp(4) }, None));
    done(store.record_attempt(number + 1, attempt(3, None), DeliveryFollowUp::Dead, None));
    assert_eq!(read(&stage, number), before);
}

fn a_person_may_send_it_again(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let tenant = stage.tenant();
    for then in [DeliveryFollowUp::Dead, DeliveryFollowUp::Delivered] {
        let number = one(&stage, &format!("{then:?}"));
        done(store.record_attempt(number, attempt(2, None), then, None));
        assert!(done(store.resend(&tenant, number, Timestamp(60), None)));
        let (delivery, attempts) = read(&stage, number);
        assert_eq!((delivery.state, delivery.due_at), (DeliveryState::Pending, Some(Timestamp(60))));
        assert_eq!((delivery.attempts, attempts.len()), (1, 1), "earlier attempts stay known");
    }
    let pending = one(&stage, "pending");
    assert!(done(store.resend(&tenant, pending, Timestamp(60), None)));
    assert_eq!(read(&stage, pending).0.due_at, Some(Timestamp(1)), "it is already pending");
    assert!(!done(store.resend(&tenant, pending + 1, Timestamp(60), None)));
}

fn the_result_is_recorded_in_the_ledger_if_requested(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let tenant = stage.tenant();
    let record = |change: &str| {
        let (setting, id, change) = ("delivery".to_owned(), "1".to_owned(), change.to_owned());
        let event = Event::SettingChanged { setting, id, change };
        Some(EventRecord { at: Timestamp(5), actor: Actor::person("operator"), event })
    };
    let number = one(&stage, "e1");
    let size = done(store.size(&tenant));
    let again = |number, message| done(store.resend(&tenant, number, Timestamp(60), record(message)));
    done(store.record_attempt(number, attempt(2, None), DeliveryFollowUp::Again { at: Timestamp(3) }, None));
    assert_eq!(done(store.size(&tenant)), size);
    done(store.record_attempt(number, attempt(3, None), DeliveryFollowUp::Dead, record("given up")));
    // It is no longer pending, so nothing happens and nothing is recorded.
    done(store.record_attempt(number, attempt(4, None), DeliveryFollowUp::Dead, record("given up twice")));
    assert!(again(number, "sent again"));
    assert!(again(number, "sent again although it is on its way"));
    assert!(!again(number + 1, "sent again although it is not there"));
    let filter = EntryFilter { execution: Some(ExecutionId::new("ledger")), ..EntryFilter::default() };
    let found = done(store.entries(&tenant, filter, Pagination::first(10))).items;
    let options: Vec<Option<EventRecord>> = found.into_iter().map(|entry| Some(entry.record)).collect();
    assert_eq!(options, [record("given up"), record("sent again")]);
    assert_eq!(done(store.size(&tenant)), size + 2);
}

fn every_attempt_is_retained_in_order(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let number = one(&stage, "e1");
    for at in 2..6 {
        done(store.record_attempt(number, attempt(at, None), DeliveryFollowUp::Again { at: Timestamp(at + 1) }, None));
    }
    done(store.record_attempt(number, attempt(6, Some(200)), DeliveryFollowUp::Delivered, None));
    let (delivery, attempts) = read(&stage, number);
    let expected: Vec<_> = (2..6).map(|at| attempt(at, None)).chain([attempt(6, Some(200))]).collect();
    assert_eq!((delivery.attempts, attempts), (5, expected));
}

fn a_long_outcome_is_cut(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let number = one(&stage, "e1");
    let outcome = "日".repeat(REASON_BYTES_MAX);
    done(store.record_attempt(number, DeliveryAttempt { outcome, ..attempt(2, None) }, DeliveryFollowUp::Dead, None));
    let stored = read(&stage, number).1[0].outcome.len();
    assert!(stored <= REASON_BYTES_MAX && stored > REASON_BYTES_MAX - 3, "{stored}");
}

fn deliveries_are_listed_newest_first(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for at in 0..12 {
        let number = {
            done(put(&stage, vec![new(if at % 2 == 0 { "even" } else { "odd" }, &format!("e{at}"), 1)]));
            list(&stage, DeliveryFilter::default())[0].number
        };
        if at % 3 == 0 {
            done(store.record_attempt(number, attempt(2, None), DeliveryFollowUp::Dead, None));
        }
    }
    let even = || Some("even".to_owned());
    let dead = Some(DeliveryState::Dead);
    let cases = [
        (DeliveryFilter::default(), (0..12).rev().collect::<Vec<_>>()),
        (DeliveryFilter { destination: even(), state: None }, vec![10, 8, 6, 4, 2, 0]),
        (DeliveryFilter { destination: None, state: dead }, vec![9, 6, 3, 0]),
        (DeliveryFilter { destination: even(), state: dead }, vec![6, 0]),
        (DeliveryFilter { destination: Some("nobody".into()), state: None }, vec![]),
    ];
    for (filter, expected) in cases {
        for limit in [1, 2, 5, 100] {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let page = Pagination { limit, after: after.take() };
                let listing = done(store.deliveries(&stage.tenant(), filter.clone(), page));
                assert!(listing.items.len() <= limit as usize);
                found.extend(listing.items.into_iter().map(|delivery| delivery.event));
                match listing.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
            let expected: Vec<String> = expected.iter().map(|at| format!("e{at}")).collect();
            assert_eq!(found, expected, "{filter:?}, {limit} at a time");
        }
    }
}

fn deliveries_are_counted_by_state(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let counts = |destination| done(store.counts(&stage.tenant(), destination));
    assert_eq!(counts(None), DeliveryCounts::default());
    for then in [DeliveryFollowUp::Dead, DeliveryFollowUp::Delivered, DeliveryFollowUp::Delivered] {
        let number = one(&stage, &format!("e{}", counts(None).delivered + counts(None).dead));
        done(store.record_attempt(number, attempt(2, None), then, None));
    }
    done(put(&stage, vec![new("hook_2", "e1", 1)]));
    assert_eq!(counts(None), DeliveryCounts { pending: 1, delivered: 2, dead: 1 });
    assert_eq!(counts(Some("hook_1")), DeliveryCounts { pending: 0, delivered: 2, dead: 1 });
    assert_eq!(counts(Some("hook_2")), DeliveryCounts { pending: 1, delivered: 0, dead: 0 });
    assert_eq!(counts(Some("hook_3")), DeliveryCounts::default());
}

fn another_tenants_deliveries_are_not_found(store: &dyn ConformingStore) {
    let (stage, other) = (ConformanceFixture::new(store), ConformanceFixture::of(store, "other"));
    let number = one(&stage, "e1");
    done(store.record_attempt(number, attempt(2, None), DeliveryFollowUp::Dead, None));
    done(put(&other, vec![new("hook_1", "e1", 1)]));
    assert_eq!(done(store.delivery(&other.tenant(), number)), None);
    assert!(!done(store.resend(&other.tenant(), number, Timestamp(3), None)));
    assert_eq!(list(&other, DeliveryFilter::default()).len(), 1);
    assert_eq!(done(store.counts(&other.tenant(), None)).dead, 0);
    assert_eq!(done(store.prune(&other.tenant(), Timestamp(1_000))), 0);
    assert_eq!(read(&stage, number).0.state, DeliveryState::Dead);
}

fn what_is_old_and_settled_is_pruned(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    done(put(&stage, (0..640).map(|at| new("hook_1", &format!("e{at}"), at)).collect()));
    for (at, delivery) in done(store.due(Timestamp(539), &[], 1_000)).iter().enumerate() {
        let then = if at % 2 == 0 { DeliveryFollowUp::Dead } else { DeliveryFollowUp::Delivered };
        done(store.record_attempt(delivery.number, attempt(at as i64, None), then, None));
    }
    assert_eq!(done(store.prune(&stage.tenant(), Timestamp(0))), 0);
    assert_eq!(done(store.prune(&stage.tenant(), Timestamp(530))), 530);
    assert_eq!(done(store.prune(&stage.tenant(), Timestamp(530))), 0);
    let counts = done(store.counts(&stage.tenant(), None));
    assert_eq!(counts, DeliveryCounts { pending: 100, delivered: 5, dead: 5 });
}

fn a_number_is_never_given_twice(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let first = one(&stage, "e1");
    done(store.record_attempt(first, attempt(2, None), DeliveryFollowUp::Dead, None));
    assert_eq!(done(store.prune(&stage.tenant(), Timestamp(3))), 1);
    assert_eq!(done(store.delivery(&stage.tenant(), first)), None);
    let second = one(&stage, "e2");
    assert!(second > first);
    assert!(read(&stage, second).1.is_empty());
}

fn delivery_bytes_max(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let large = |bytes| NewDelivery { body: vec![b'x'; bytes], ..new("hook_1", "e1", 1) };
    let both = vec![new("hook_1", "e0", 1), large(DELIVERY_BYTES_MAX + 1)];
    refused(put(&stage, both), "store.limit");
    assert!(list(&stage, DeliveryFilter::default()).is_empty());
    done(put(&stage, vec![large(DELIVERY_BYTES_MAX)]));
    assert_eq!(list(&stage, DeliveryFilter::default())[0].body.len(), DELIVERY_BYTES_MAX);
}

fn deliveries_max(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let many = |count: usize| (0..count).map(|at| new("hook_1", &format!("e{at}"), 1)).collect();
    refused(put(&stage, many(DELIVERIES_MAX + 1)), "store.limit");
    done(put(&stage, many(DELIVERIES_MAX)));
    assert_eq!(done(store.counts(&stage.tenant(), None)).pending, DELIVERIES_MAX as u64);
}

fn names_are_visible(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for name in ["", "a b", "a\u{0}"] {
        refused(put(&stage, vec![new(name, "e1", 1)]), "store.invalid");
        refused(put(&stage, vec![new("hook_1", name, 1)]), "store.invalid");
        let reader = Some(ReaderAdvance { reader: name.into(), from: 0, to: 1 });
        refused(store.put(&stage.tenant(), reader, Vec::new()), "store.invalid");
    }
    assert!(list(&stage, DeliveryFilter::default()).is_empty());
}
