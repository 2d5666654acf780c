//! Query plans on a database with a million entries: each statement uses the index it names, in its order, without
//! sorting and without a full scan.

use super::super::connection::DatabaseFile;
use super::super::outbox::{self, list};
use super::super::upkeep::clean;
use super::super::{feed, migration, payloads, proof, register, session};
use super::cursor::{ListKind, ListPaging};
use super::entries::{self, FilterNumbers};
use super::executions;
use super::select::SelectStatement;
use super::*;
use rutter_core::limits::PAGE_MAX;
use rutter_core::port::query::{ListCursor, TimeRange};
use rutter_core::time::Timestamp;

/// 50,000 executions with 20 entries each, nine tenths of them of the first tenant.
const FILL: &str = "
    insert into tenant (number, name, origin, head)
    values (1, 'acme', 'a', zeroblob(32)), (2, 'other', 'b', zeroblob(32));
    insert into kind (number, name)
    values (3, 'execution_opened'), (4, 'attempt_failed'), (5, 'paused'), (6, 'killed');
    insert into actor (number, party, name) values (2, 'agent', 'pilot'), (3, 'person', 'operator');
    insert into worker (number, name, until) values (1, 'w', 0);

    with recursive n (i) as (select 0 union all select i + 1 from n where i < 1999)
    insert into plan (number, tenant, id, name, revision, saved_at)
    select i + 1, 1 + (i % 10 = 9), 'plan_' || i, 'name ' || (i % 50), 1, i / 3 from n;
    insert into revision (number, plan, revision, hash, actor, saved_at, name, goal, tags, steps, format, source, tools)
    select number, number, 1, randomblob(32), 2, saved_at, name, 'goal', '[\"common\"]', 1, 'json', x'00', x'00' from plan;
    insert into plan_tag (tenant, tag, saved_at, plan) select tenant, 'common', saved_at, number from plan;
    insert into plan_text (rowid, words)
    select tenant << 40 | number, 'planned ' || iif(number % 100 = 1, 'seldom', 'often') from plan;

    with recursive n (i) as (select 0 union all select i + 1 from n where i < 49999)
    insert into execution (number, tenant, id, plan, status, driver, hash, revision, settled, total, questions,
        opened_at, last_at, seq, head, epoch, owner)
    select i + 1, 1 + (i % 10 = 9), 'exec_' || i, i % 2000 + 1,
        case i % 16 when 0 then 'failed' when 1 then 'waiting' when 2 then 'partial' else 'completed' end,
        'server', revision.hash, 1, 1, 1, i % 16 = 1, i * 20, i * 20 + 19, 20, zeroblob(32), 1, 1
    from n
    join revision on revision.number = i % 2000 + 1;
    insert into execution_tag (tenant, tag, opened_at, execution)
    select tenant, 'common', opened_at, number from execution;

    with recursive n (i) as (select 0 union all select i + 1 from n where i < 999999)
    insert into entry (place, execution, seq, tenant, at, kind, actor, hash, bytes)
    select (1 + (i / 20 % 10 = 9)) << 40 | i, i / 20 + 1, i % 20 + 1, 1 + (i / 20 % 10 = 9), i / 2,
        case i % 20 when 0 then 3 when 18 then 4 when 19 then 5 else 1 + i % 2 end,
        case i % 20 when 19 then 3 when 0 then 2 else 1 end, zeroblob(32), x'00'
    from n;
    insert into payload (number, salt, bytes) select place * 4, zeroblob(16), x'00' from entry where seq = 1;
    insert into entry_text (rowid, words)
    select place, 'said ' || iif(at % 1000 = 9, 'seldom', 'often') from entry where kind = 4;
    insert into request (tenant, key, digest, execution, at) select tenant, id, hash, id, opened_at from execution;";

/// The most steps for one page here; a scan of all executions of the tenant would take more.
const STEPS_OF_A_PAGE: u64 = 60_000;

/// A statement, and the index that its query plan must contain.
struct QueryPlanCase {
    select: SelectStatement,
    index: &'static str,
    /// More than one filter can take long; then the limit of steps applies.
    is_quick: bool,
}

#[test]
fn every_query_uses_the_index_it_names() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = million(directory.path());
    for QueryPlanCase { select, index, is_quick } in cases() {
        check_plan(&connection, &select.sql, index);
        if is_quick {
            let found = bounded(&mut connection, STEPS_OF_A_PAGE, |connection| select.keys(connection));
            assert!(!found.unwrap_or_else(|error| panic!("{error}: {}", select.sql)).is_empty(), "{}", select.sql);
        }
    }
    for (sql, index) in statements() {
        check_plan(&connection, sql, index);
    }
    a_search_that_finds_too_much_is_refused(&mut connection);
}

/// A database filled in seconds, without syncs: it need not survive a crash.
fn million(directory: &std::path::Path) -> Connection {
    let file = DatabaseFile { path: directory.join("million.db"), vfs: None };
    let mut connection = file.writer().unwrap();
    migration::migrate(&mut connection, migration::ALL, Timestamp(0)).unwrap();
    for (pragma, value) in [("synchronous", "off"), ("secure_delete", "off"), ("foreign_keys", "off")] {
        connection.pragma_update(None, pragma, value).unwrap();
    }
    let transaction = connection.transaction().unwrap();
    transaction.execute_batch(FILL).unwrap();
    transaction.commit().unwrap();
    connection
}

fn check_plan(connection: &Connection, sql: &str, index: &str) {
    let mut statement = connection.prepare(&format!("explain query plan {sql}")).unwrap();
    // Parameters that are not set are null; the plan does not depend on them.
    let lines = statement.raw_query().mapped(|row| row.get::<_, String>(3)).map(Result::unwrap);
    let lines: Vec<String> = lines.collect();
    let plan = lines.join("\n");
    assert!(plan.contains(index), "expected {index} in\n{plan}\n{sql}");
    for line in &lines {
        // Words within a range of rowids, or one row by its rowid.
        let is_search = line.contains("_text VIRTUAL TABLE INDEX") && (line.ends_with(":M1><") || line.ends_with(":="));
        // One value per requested status or kind, or per tag of one plan; and the two rows of PART.
        let is_small = line.contains("json_each") || line.starts_with("SCAN (subquery");
        assert!(!line.starts_with("SCAN") || is_search || is_small, "{line} in\n{plan}\n{sql}");
        assert!(!line.contains("TEMP B-TREE"), "{line} in\n{plan}\n{sql}");
    }
}

fn paging(list: ListKind, after: Option<&str>) -> ListPaging {
    let after = after.map(|after| ListCursor(after.to_owned()));
    ListPaging::read(list, &Pagination { limit: 100, after }).unwrap()
}

fn words(text: &str) -> search::SearchWords {
    search::read(Some(text)).unwrap().unwrap()
}

fn cases() -> Vec<QueryPlanCase> {
    let mut cases = Vec::new();
    cases_of_executions(&mut cases);
    cases_of_entries(&mut cases);
    cases_of_plans(&mut cases);
    cases
}

fn cases_of_executions(cases: &mut Vec<QueryPlanCase>) {
    use ExecutionStatus::{Completed, Failed, Partial};
    let statuses = [vec![], vec![Failed], vec![Partial, Failed, Completed], ExecutionStatus::ALL.to_vec()];
    for after in [None, Some("x600000.30001")] {
        let paging = paging(ListKind::Executions, after);
        for bits in 0..8_u32 {
            let (asking, plan, tag) = (bits & 1 > 0, (bits & 2 > 0).then_some(1), bits & 4 > 0);
            for statuses in &statuses {
                let opened = TimeRange { from: Some(Timestamp(10)), until: Some(Timestamp(900_000)) };
                let tag = tag.then(|| "common".to_owned());
                let filter = ExecutionFilter { tag, statuses: statuses.clone(), asking, opened, ..Default::default() };
                let wanted = executions::ExecutionSelection { tenant: 1, plan, filter: &filter };
                let (index, columns) = match (asking, plan, &filter.tag, statuses.is_empty()) {
                    (true, ..) => ("execution_asking", "tenant=?"),
                    (_, Some(_), _, false) => ("execution_plan_status", "plan=? AND status=?"),
                    (_, Some(_), ..) => ("execution_plan", "plan=?"),
                    (_, _, Some(_), _) => ("execution_tag USING PRIMARY KEY", "tenant=? AND tag=?"),
                    (.., false) => ("execution_status", "tenant=? AND status=?"),
                    _ => ("execution_opened", "tenant=?"),
                };
                let select = wanted.select(&paging);
                let is_quick = bits.count_ones() + u32::from(!statuses.is_empty()) < 2;
                assert!(select.sql.contains(index.split(' ').next().unwrap()));
                cases.push(QueryPlanCase { select, index: seek(index, columns, "opened_at"), is_quick });
                let is_quick = bits == 0 && statuses.is_empty();
                let [select_statement, planned] = wanted.search(&words("seldom"), &paging);
                cases.push(QueryPlanCase {
                    select: select_statement,
                    index: "entry USING INTEGER PRIMARY KEY (rowid=?)",
                    is_quick,
                });
                let index = "execution_plan (plan=? AND opened_at>";
                cases.push(QueryPlanCase { select: planned, index, is_quick });
            }
        }
    }
}

fn cases_of_entries(cases: &mut Vec<QueryPlanCase>) {
    let kinds: [&[i64]; 5] = [&[], &[4], &[3, 4, 5], &[1], &[1, 3]];
    for words in [None, Some(words("often"))] {
        for kinds in kinds {
            for actor in [None, Some(1), Some(3)] {
                let numbers = FilterNumbers { tenant: 1, journal: None, kinds: kinds.to_vec(), actor };
                let is_quick = usize::from(!kinds.is_empty()) + usize::from(actor.is_some()) < 2;
                let filter =
                    EntryFilter { at: TimeRange { from: Some(Timestamp(10)), until: None }, ..Default::default() };
                let wanted = |list, after| entries::EntrySelection {
                    filter: filter.clone(),
                    words: words.clone(),
                    paging: paging(list, after),
                };
                let rare = !kinds.is_empty() && kinds.iter().all(|kind| *kind > 2);
                let index = match (&words, rare, actor) {
                    (Some(_), ..) => "entry_text VIRTUAL TABLE INDEX",
                    (_, true, _) => seek("entry_kind", "tenant=? AND kind=?", "at"),
                    (_, _, Some(3)) => seek("entry_actor", "tenant=? AND actor=?", "at"),
                    _ => seek("entry_at", "tenant=?", "at"),
                };
                let (list, cursor) = match words {
                    None => (ListKind::Entries, "e300000.1099512000000"),
                    Some(_) => (ListKind::FoundEntries, "f300000.1099512000000"),
                };
                for after in [None, Some(cursor)] {
                    let select = entries::select(&numbers, &wanted(list, after));
                    let is_quick = is_quick && !(words.is_some() && kinds.first().is_some_and(|kind| *kind != 4));
                    let is_quick = is_quick && !(words.is_some() && actor == Some(3));
                    cases.push(QueryPlanCase { select, index, is_quick });
                }
                let index = match words {
                    None => "entry_seq (execution=? AND seq>?)",
                    Some(_) => index,
                };
                for after in [None, Some("j3.1")] {
                    let part = (1 << 40, (1 << 40) + 100);
                    let select = entries::select_journal(&numbers, 2, &wanted(ListKind::Journal, after), part);
                    cases.push(QueryPlanCase { select, index, is_quick: is_quick && words.is_none() });
                }
            }
        }
    }
}

fn cases_of_plans(cases: &mut Vec<QueryPlanCase>) {
    for after in [None, Some("p500.1500")] {
        let paging = paging(ListKind::Plans, after);
        for (name, tag) in
            [(None, None), (Some("name 7"), None), (None, Some("common")), (Some("name 7"), Some("common"))]
        {
            let filter =
                PlanFilter { name: name.map(str::to_owned), tag: tag.map(str::to_owned), ..PlanFilter::default() };
            let index = match (name, tag) {
                (Some(_), _) => seek("plan_name", "tenant=? AND name=?", "saved_at"),
                (_, Some(_)) => seek("plan_tag USING PRIMARY KEY", "tenant=? AND tag=?", "saved_at"),
                _ => seek("plan_saved", "tenant=?", "saved_at"),
            };
            let select = plans::select(1, &filter, &paging);
            cases.push(QueryPlanCase { select, index, is_quick: true });
            let select = plans::written(1, &filter, &words("seldom"), &paging);
            cases.push(QueryPlanCase {
                select,
                index: "plan USING INTEGER PRIMARY KEY (rowid=?)",
                is_quick: name.is_none(),
            });
        }
    }
}

/// How a query plan shows that an index is searched within both bounds of the list.
fn seek(index: &str, columns: &str, time: &str) -> &'static str {
    format!("{index} ({columns} AND {time}>").leak()
}

/// Fixed statements, and the index each must use.
fn statements() -> Vec<(&'static str, &'static str)> {
    let mut all = vec![
        (TENANT, "tenant USING COVERING INDEX sqlite_autoindex_tenant_1 (name=?)"),
        (BY_STATUS, "total USING PRIMARY KEY (tenant=?)"),
        (PLANS, "tenant USING INTEGER PRIMARY KEY (rowid=?)"),
        (session::SIZE, "entry USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (executions::NUMBER, "sqlite_autoindex_execution_1 (tenant=? AND id=?)"),
        (executions::PLAN_NUMBER, "sqlite_autoindex_plan_1 (tenant=? AND id=?)"),
        (&executions::SUMMARY, "revision USING INDEX revision_hash (hash=?)"),
        (plans::NEWEST_REVISION, "sqlite_autoindex_revision_1 (plan=? AND revision=?)"),
        (plans::ONE_REVISION, "sqlite_autoindex_revision_1 (plan=? AND revision=?)"),
        (plans::EXECUTED_REVISION, "sqlite_autoindex_revision_1 (plan=? AND revision=?)"),
        (entries::EXECUTION, "sqlite_autoindex_execution_1 (tenant=? AND id=?)"),
        (entries::KIND, "sqlite_autoindex_kind_1 (name=?)"),
        (entries::ACTOR, "sqlite_autoindex_actor_1 (party=? AND name=?)"),
        (entries::PART, "entry_seq (execution=? AND seq>?)"),
        (entries::ENTRY, "entry USING INTEGER PRIMARY KEY (rowid=?)"),
        (clean::NEXT, "execution_status (tenant=? AND status=? AND opened_at>"),
        (clean::STILL, "execution USING INTEGER PRIMARY KEY (rowid=?)"),
        (clean::UNINDEX, "entry_seq (execution=?)"),
        (clean::HASHES_ONLY, "entry_seq (execution=?)"),
        (clean::UNTAG, "execution_tag_execution (execution=?)"),
        (clean::OLD_REQUESTS, "request_at (tenant=? AND at<?)"),
        (payloads::FORGET_BLOB, "payload_blob (blob=?)"),
        (feed::ENTRIES, "entry USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (register::FIND, "sqlite_autoindex_note_1 (tenant=? AND kind=? AND id=?)"),
        (register::LIST, "sqlite_autoindex_note_1 (tenant=? AND kind=? AND id>?)"),
        (register::COUNT, "note_kind (kind=? AND tenant=?)"),
        (register::NEXT_TENANT, "note_kind (kind=? AND tenant>?)"),
        (register::VERSION, "sqlite_autoindex_note_1 (tenant=? AND kind=? AND id=?)"),
        (proof::CHECKPOINTS, "checkpoint USING PRIMARY KEY (tenant=? AND (epoch,size)<(?,?))"),
        (outbox::MARK, "mark USING PRIMARY KEY (tenant=? AND reader=?)"),
        (outbox::OLD, "delivery_touched (tenant=? AND touched_at<?)"),
        (outbox::FORGET_ATTEMPTS, "delivery_attempt USING PRIMARY KEY (delivery=?)"),
        (list::DUE, "delivery_due (due_at<?)"),
        (list::NEXT_DUE, "delivery_due"),
        (list::ALL, "delivery_tenant (tenant=? AND rowid<?)"),
        (list::BY_STATE, "delivery_state (tenant=? AND state=? AND rowid<?)"),
        (list::BY_DESTINATION, "delivery_destination (tenant=? AND destination=? AND rowid<?)"),
        (list::BY_BOTH, "delivery_destination_state (tenant=? AND destination=? AND state=? AND rowid<?)"),
        (list::COUNTS, "delivery_state (tenant=?)"),
        (list::COUNTS_OF_ONE, "delivery_destination_state (tenant=? AND destination=?)"),
        (list::ONE, "delivery USING INTEGER PRIMARY KEY (rowid=?)"),
        (list::ATTEMPTS, "delivery_attempt USING PRIMARY KEY (delivery=?)"),
    ];
    all.extend(payloads::SELECTS.iter().map(|sql| (*sql, "payload USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)")));
    all
}

fn a_search_that_finds_too_much_is_refused(connection: &mut Connection) {
    let paging = ListPaging::read(ListKind::Executions, &Pagination::first(PAGE_MAX)).unwrap();
    let mut search = |text: &str, opened: TimeRange| {
        let filter = ExecutionFilter { opened, ..Default::default() };
        bounded(connection, STEPS_MAX, |connection| {
            executions::list(connection, 1, &filter, Some(&words(text)), paging)
        })
    };
    let refused = search("often", TimeRange::default()).unwrap_err();
    assert!(matches!(&refused, Error::TooBroad(why) if why.contains("10000")), "{refused}");
    let short = TimeRange { from: Some(Timestamp(0)), until: Some(Timestamp(10_000)) };
    assert_eq!(search("often", short).unwrap().items.len(), 445, "five of 450 have other words");
}
