//! Going through lists page by page while more is written.

use crate::query::fixture::{QueryFixture, acme, of, plan};
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::port::query::{
    EntryFilter, ExecutionFilter, ListCursor, ListPage, Pagination, PlanFilter, StoreQuery,
};
use rutter_store::wait;
use serde_json::json;

/// Reads a list to its end, two at a time, and does something between two pages.
fn pages<T>(mut list: impl FnMut(Pagination) -> ListPage<T>, mut between: impl FnMut()) -> Vec<T> {
    let mut items = Vec::new();
    let mut page = Pagination::first(2);
    loop {
        let listing = list(page.clone());
        assert!(listing.items.len() <= 2);
        items.extend(listing.items);
        page.after = listing.next;
        if page.after.is_none() {
            return items;
        }
        between();
    }
}

fn filters() -> Vec<ExecutionFilter> {
    let any = ExecutionFilter::default;
    vec![
        any(),
        ExecutionFilter { tag: Some("sea".into()), ..any() },
        ExecutionFilter { statuses: vec![ExecutionStatus::Pending, ExecutionStatus::Failed], ..any() },
        ExecutionFilter { text: Some("order".into()), ..any() },
        ExecutionFilter { text: Some("noted".into()), ..any() },
    ]
}

#[test]
fn executions_opened_meanwhile_are_neither_skipped_nor_doubled() {
    for filter in filters() {
        let fixture = QueryFixture::new();
        let tagged = plan("order-by-sea", json!({"tags": ["sea"]}));
        fixture.save("acme", "plan_2", &tagged, 1);
        let opened = |number: u32, at: i64| {
            let mut pen = fixture.open_of("acme", "plan_2", &tagged, &format!("exec_{number}"), at);
            pen.row.status = if number.is_multiple_of(2) { ExecutionStatus::Failed } else { ExecutionStatus::Pending };
            pen.note("noted", json!(1));
        };
        // All at the same time, or at two times: the second key decides.
        (0..7).for_each(|number| opened(number, 5 + i64::from(number / 4)));
        let mut number = 7;
        let found = pages(
            |page| wait(fixture.store.executions(&acme(), filter.clone(), page)).unwrap(),
            || {
                opened(number, 6);
                number += 1;
            },
        );
        let found: Vec<String> = found.iter().map(|execution| execution.id.to_string()).collect();
        assert_eq!(found, ["exec_6", "exec_5", "exec_4", "exec_3", "exec_2", "exec_1", "exec_0"], "{filter:?}");
    }
}

#[test]
fn entries_written_meanwhile_are_neither_skipped_nor_doubled() {
    let any = EntryFilter::default;
    for filter in [
        any(),
        EntryFilter { kinds: vec!["execution_opened".into(), "plan_saved".into()], ..any() },
        EntryFilter { actor: Some(rutter_core::actor::Actor::agent("pilot")), ..any() },
        EntryFilter { text: Some("noted".into()), ..any() },
    ] {
        let fixture = QueryFixture::new();
        let note = |number: u32| fixture.open(&format!("exec_{number}"), 5).note("noted", json!(1));
        (0..4).for_each(note);
        let whole = fixture.labels(filter.clone());
        assert!(whole.len() >= 4);
        let mut number = 4;
        let found = pages(
            |page| wait(fixture.store.entries(&acme(), filter.clone(), page)).unwrap(),
            || {
                note(number);
                number += 1;
            },
        );
        let found: Vec<String> = found.iter().map(|entry| format!("{} {}", entry.execution, entry.seq)).collect();
        assert_eq!(found, whole, "{filter:?}");
    }
}

#[test]
fn a_journal_goes_on_with_what_was_written_meanwhile() {
    for text in [None, Some("noted".to_owned())] {
        let fixture = QueryFixture::new();
        let mut pen = fixture.open("exec_1", 5);
        let mut other = fixture.open("exec_2", 5);
        for _ in 0..3 {
            pen.note("noted", json!(1));
            other.note("noted", json!(1));
        }
        let filter = EntryFilter { text: text.clone(), ..of("exec_1") };
        let mut left = 2;
        let found = pages(
            |page| wait(fixture.store.entries(&acme(), filter.clone(), page)).unwrap(),
            || {
                if left > 0 {
                    pen.note("noted", json!(1));
                    left -= 1;
                }
            },
        );
        let seqs: Vec<u64> = found.iter().map(|entry| entry.seq).collect();
        let expected = if text.is_some() { 2..=5 } else { 1..=6 };
        assert_eq!(seqs, expected.collect::<Vec<_>>());
    }
}

#[test]
fn plans_saved_meanwhile_are_neither_skipped_nor_doubled() {
    let any = PlanFilter::default;
    for filter in [
        any(),
        PlanFilter { name: Some("same".into()), ..any() },
        PlanFilter { tag: Some("sea".into()), ..any() },
        PlanFilter { text: Some("same".into()), ..any() },
    ] {
        let fixture = QueryFixture::new();
        let same = plan("same", json!({"tags": ["sea"]}));
        let save = |number: u32| fixture.save("acme", &format!("same_{number}"), &same, 5);
        (0..5).for_each(save);
        let whole = fixture.plans(filter.clone());
        assert!(whole.len() >= 5);
        let mut number = 5;
        let found = pages(
            |page| wait(fixture.store.plans(&acme(), filter.clone(), page)).unwrap(),
            || {
                save(number);
                number += 1;
            },
        );
        let found: Vec<String> =
            found.iter().map(|plan| format!("{} {} {}", plan.id, plan.revision, plan.name)).collect();
        assert_eq!(found, whole, "{filter:?}");
    }
}

#[test]
fn a_full_last_page_has_no_next() {
    let fixture = QueryFixture::new();
    (0..4).for_each(|number| drop(fixture.open(&format!("exec_{number}"), 5)));
    for filter in [ExecutionFilter::default(), ExecutionFilter { text: Some("order".into()), ..Default::default() }] {
        let next =
            |limit| wait(fixture.store.executions(&acme(), filter.clone(), Pagination::first(limit))).unwrap().next;
        assert_eq!(next(4), None);
        assert!(next(3).is_some());
    }
}

#[test]
fn a_broken_cursor_is_invalid() {
    let fixture = QueryFixture::new();
    (0..2).for_each(|number| drop(fixture.open(&format!("exec_{number}"), 5)));
    let good = wait(fixture.store.executions(&acme(), ExecutionFilter::default(), Pagination::first(1))).unwrap().next;
    let Some(ListCursor(good)) = good else { panic!("there are two") };
    for text in ["", "nonsense", "\u{1F6A2}", "1 2", "'; drop table entry", "x1", &good] {
        let page = || Pagination { limit: 10, after: Some(ListCursor(text.to_owned())) };
        let executions = wait(fixture.store.executions(&acme(), ExecutionFilter::default(), page()));
        assert_eq!(executions.is_ok(), text == good);
        let code = |error: rutter_core::port::Error| error.code();
        let invalid = "store.invalid";
        assert_eq!(
            wait(fixture.store.plans(&acme(), PlanFilter::default(), page())).map_err(code).unwrap_err(),
            invalid
        );
        for filter in
            [EntryFilter::default(), of("exec_1"), EntryFilter { text: Some("a".into()), ..EntryFilter::default() }]
        {
            assert_eq!(wait(fixture.store.entries(&acme(), filter, page())).map_err(code).unwrap_err(), invalid);
        }
    }
}
