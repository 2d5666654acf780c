//! A commit that reported failure may have taken effect: the retry notices, and does nothing twice.

use super::super::connection::DatabaseFile;
use super::super::migration;
use super::*;

const NOW: Timestamp = Timestamp(1);

fn session(directory: &std::path::Path) -> WriteSession {
    let mut connection = DatabaseFile { path: directory.join("outbox.db"), vfs: None }.writer().unwrap();
    migration::migrate(&mut connection, migration::ALL, NOW).unwrap();
    WriteSession::new(connection)
}

/// Attempts something twice; the first transaction ends with this statement.
fn twice(session: &mut WriteSession, first_ends: &str, attempt: &mut dyn FnMut(&mut WriteSession)) {
    for ends in [first_ends, "commit"] {
        session.connection.execute_batch("begin").unwrap();
        attempt(session);
        session.connection.execute_batch(ends).unwrap();
        session.forget();
    }
}

#[test]
fn whether_the_first_commit_was_lost_or_not_deliveries_are_put_and_tried_once() {
    for ends in ["commit", "rollback"] {
        let directory = tempfile::tempdir().unwrap();
        let mut session = session(directory.path());
        let (tenant, mut is_again) = (TenantId::new("acme"), false);
        let moved = ReaderAdvance { reader: "webhooks".into(), from: 0, to: 3 };
        let delivery = NewDelivery {
            destination: "hook_1".into(),
            event: "e1".into(),
            kind: "execution.ended".into(),
            body: b"{}".to_vec(),
            due_at: NOW,
        };
        twice(&mut session, ends, &mut |session| {
            let is_again = std::mem::replace(&mut is_again, true);
            let deliveries = std::slice::from_ref(&delivery);
            put(session, &tenant, Some(&moved), deliveries, NOW, is_again).unwrap();
        });
        let due = list::due(&mut session.connection, NOW, "[]".to_owned(), 10).unwrap();
        assert_eq!(due.len(), 1, "{ends}");
        let attempt = DeliveryAttempt { at: NOW, took_ms: 1, status: None, outcome: "no answer".into() };
        let mut before = None;
        twice(&mut session, ends, &mut |session| {
            tried(session, due[0].number, &attempt, DeliveryFollowUp::Again { at: NOW }, None, &mut before).unwrap();
        });
        assert_eq!(list::due(&mut session.connection, NOW, "[]".to_owned(), 10).unwrap()[0].attempts, 1, "{ends}");
    }
}
