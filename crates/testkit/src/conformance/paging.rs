//! Reading a list page by page, while more is written.

use super::fixture::{ConformanceFixture, PLAN, done, plan, refused};
use super::{ConformanceCase, ConformingStore, cases};
use rutter_core::id::ExecutionId;
use rutter_core::port::query::{EntryFilter, ExecutionFilter, ListCursor, ListPage, Pagination, PlanFilter};
use rutter_core::time::Timestamp;

pub(super) const CASES: &[(&str, ConformanceCase)] = cases![
    pages_of_any_size_make_the_same_list,
    a_full_last_page_has_no_next,
    executions_opened_meanwhile_change_nothing_behind_the_cursor,
    plans_saved_meanwhile_change_nothing_behind_the_cursor,
    entries_written_meanwhile_change_nothing_behind_the_cursor,
    entries_of_one_execution_continue_with_those_appended_meanwhile,
    a_broken_cursor_is_invalid,
    a_filter_holds_on_every_page,
];

/// Reads a list to its end.
fn all<T>(limit: u32, list: &dyn Fn(Pagination) -> ListPage<T>) -> Vec<T> {
    let mut items = Vec::new();
    let mut after = None;
    loop {
        let listing = list(Pagination { limit, after });
        assert!(listing.items.len() <= limit as usize);
        items.extend(listing.items);
        after = listing.next;
        if after.is_none() {
            return items;
        }
    }
}

fn executions(stage: &ConformanceFixture<'_>, page: Pagination) -> ListPage<String> {
    let listing = done(stage.store.executions(&stage.tenant(), ExecutionFilter::default(), page));
    let items = listing.items.iter().map(|execution| execution.id.to_string()).collect();
    ListPage { items, next: listing.next }
}

fn plans(stage: &ConformanceFixture<'_>, page: Pagination) -> ListPage<String> {
    let listing = done(stage.store.plans(&stage.tenant(), PlanFilter::default(), page));
    ListPage { items: listing.items.iter().map(|plan| plan.id.to_string()).collect(), next: listing.next }
}

fn entries(stage: &ConformanceFixture<'_>, of: Option<&str>, page: Pagination) -> ListPage<String> {
    let filter = EntryFilter { execution: of.map(ExecutionId::new), ..EntryFilter::default() };
    let listing = done(stage.store.entries(&stage.tenant(), filter, page));
    let items = listing.items.iter().map(|entry| format!("{} {}", entry.execution, entry.seq)).collect();
    ListPage { items, next: listing.next }
}

fn fill(stage: &ConformanceFixture<'_>) {
    for at in 0..7 {
        let mut pen = stage.driven(&format!("exec_{at}"));
        // Some times occur twice, and they do not only increase.
        pen.now = Timestamp([5, 5, 1, 9, 9, 5, 2][at]);
        stage.write(&mut pen, "a");
        stage.write(&mut pen, "b");
        stage.save(&format!("other_{at}"), &plan("other"));
    }
}

fn pages_of_any_size_make_the_same_list(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    fill(&stage);
    let whole = (
        executions(&stage, Pagination::first(1_000)).items,
        plans(&stage, Pagination::first(1_000)).items,
        entries(&stage, None, Pagination::first(1_000)).items,
        entries(&stage, Some("exec_3"), Pagination::first(1_000)).items,
    );
    assert_eq!((whole.0.len(), whole.1.len(), whole.2.len(), whole.3.len()), (7, 8, 29, 3));
    for limit in [1, 2, 3, 5, 7, 8, 9, 28, 29, 30] {
        assert_eq!(all(limit, &|page| executions(&stage, page)), whole.0);
        assert_eq!(all(limit, &|page| plans(&stage, page)), whole.1);
        assert_eq!(all(limit, &|page| entries(&stage, None, page)), whole.2);
        assert_eq!(all(limit, &|page| entries(&stage, Some("exec_3"), page)), whole.3);
    }
}

fn a_full_last_page_has_no_next(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    fill(&stage);
    assert_eq!(executions(&stage, Pagination::first(7)).next, None);
    assert_eq!(plans(&stage, Pagination::first(8)).next, None);
    assert_eq!(entries(&stage, None, Pagination::first(29)).next, None);
    assert_eq!(entries(&stage, Some("exec_3"), Pagination::first(3)).next, None);
    assert!(executions(&stage, Pagination::first(6)).next.is_some());
}

fn executions_opened_meanwhile_change_nothing_behind_the_cursor(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    fill(&stage);
    let first = executions(&stage, Pagination::first(3));
    stage.opened("exec_new");
    let rest = executions(&stage, Pagination { limit: 100, after: first.next });
    assert_eq!(first.items, ["exec_6", "exec_5", "exec_4"]);
    assert_eq!(rest.items, ["exec_3", "exec_2", "exec_1", "exec_0"]);
}

fn plans_saved_meanwhile_change_nothing_behind_the_cursor(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    fill(&stage);
    let whole = plans(&stage, Pagination::first(100)).items;
    let first = plans(&stage, Pagination::first(3));
    done(store.save(stage.new_plan("plan_new", &plan("new"), 1_000)));
    let rest = plans(&stage, Pagination { limit: 100, after: first.next });
    assert_eq!([first.items, rest.items].concat(), whole);
}

fn entries_written_meanwhile_change_nothing_behind_the_cursor(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    fill(&stage);
    let whole = entries(&stage, None, Pagination::first(100)).items;
    let first = entries(&stage, None, Pagination::first(10));
    let mut pen = stage.driven("exec_new");
    pen.now = Timestamp(1_000);
    stage.write(&mut pen, "new");
    let rest = entries(&stage, None, Pagination { limit: 100, after: first.next });
    let old = rest.items.into_iter().filter(|entry| !entry.starts_with("exec_new"));
    assert_eq!(first.items.into_iter().chain(old).collect::<Vec<_>>(), whole);
}

fn entries_of_one_execution_continue_with_those_appended_meanwhile(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    stage.write(&mut pen, "a");
    let first = entries(&stage, Some("exec_1"), Pagination::first(1));
    stage.write(&mut pen, "b");
    let rest = entries(&stage, Some("exec_1"), Pagination { limit: 100, after: first.next });
    assert_eq!((first.items, rest.items), (vec!["exec_1 1".into()], vec!["exec_1 2".into(), "exec_1 3".into()]));
}

fn a_broken_cursor_is_invalid(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    fill(&stage);
    let tenant = stage.tenant();
    for text in ["", "nonsense", "\u{1F6A2}", "1 2 3 4 5", "'; drop table entry"] {
        let page = || Pagination { limit: 10, after: Some(ListCursor(text.to_owned())) };
        refused(store.executions(&tenant, ExecutionFilter::default(), page()), "store.invalid");
        refused(store.plans(&tenant, PlanFilter::default(), page()), "store.invalid");
        refused(store.entries(&tenant, EntryFilter::default(), page()), "store.invalid");
        let one = EntryFilter { execution: Some(ExecutionId::new("exec_1")), ..EntryFilter::default() };
        refused(store.entries(&tenant, one, page()), "store.invalid");
    }
}

fn a_filter_holds_on_every_page(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    fill(&stage);
    let filter = EntryFilter { text: Some("b".into()), ..EntryFilter::default() };
    let found = all(2, &|page| {
        let listing = done(store.entries(&stage.tenant(), filter.clone(), page));
        ListPage { items: listing.items.iter().map(|entry| entry.seq).collect(), next: listing.next }
    });
    assert_eq!(found, [3; 7]);
    let plan = ExecutionFilter { text: Some("simple".into()), ..ExecutionFilter::default() };
    let found = all(2, &|page| done(store.executions(&stage.tenant(), plan.clone(), page)));
    assert_eq!(found.iter().filter(|execution| execution.plan.as_str() == PLAN).count(), 7);
}
