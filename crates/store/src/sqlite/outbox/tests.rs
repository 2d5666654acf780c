//! A commit that was said to fail may have happened: the second attempt notices, and does nothing twice.

use super::super::connection::File;
use super::super::migration;
use super::*;

const NOW: Timestamp = Timestamp(1);

fn session(directory: &std::path::Path) -> Session {
    let mut connection = File { path: directory.join("outbox.db"), vfs: None }.writer().unwrap();
    migration::migrate(&mut connection, migration::ALL, NOW).unwrap();
    Session::new(connection)
}

/// Attempts something twice; the first one's transaction ends with these words.
fn twice(session: &mut Session, first_ends: &str, attempt: &mut dyn FnMut(&mut Session)) {
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
        let moved = Moved { reader: "courier".into(), from: 0, to: 3 };
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
            tried(session, due[0].number, &attempt, Then::Again { at: NOW }, None, &mut before).unwrap();
        });
        assert_eq!(
            list::due(&mut session.connection, NOW, "[]".to_owned(), 10).unwrap()[0].attempts,
            1,
            "{ends}"
        );
    }
}
