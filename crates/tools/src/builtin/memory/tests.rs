//! A full memory takes no more until something expires, whichever limit was reached.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

use super::*;
use rutter_store::SqliteOptions;

async fn store(memories: &MemoryTools, key: &str, parameters: Value, now: i64) -> Result<Value, CallOutcome> {
    memories.store(read(&parameters).unwrap(), &TenantId::new("tenant"), key, Timestamp(now)).await
}

#[tokio::test]
async fn a_full_memory_takes_no_more_until_something_expires() {
    let limits =
        [MemoryLimits { memories_max: 70, text_mib_max: 64 }, MemoryLimits { memories_max: 100_000, text_mib_max: 1 }];
    for limits in limits {
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteOptions::new(directory.path(), Arc::new(|| Timestamp(0)));
        let database = rutter_store::SqliteStore::open(SqliteOptions { reserve_bytes: 0, ..options }).unwrap();
        let notes = NoteStore::new(Arc::new(database));
        let memories = MemoryTools { limits, ..MemoryTools::new(notes.clone()) };
        // Seventy of fifteen kilobytes are just above a mebibyte.
        for number in 0..70 {
            let mut parameters = json!({ "text": "x".repeat(15_000) });
            if number < 60 {
                parameters["expires_after"] = json!("1h");
            }
            store(&memories, &format!("{number}"), parameters, number).await.unwrap();
        }
        let more = || json!({ "text": "more" });
        let refused = store(&memories, "k", more(), 100).await.unwrap_err();
        let CallOutcome::NotDone(failure) = refused else { panic!("{refused:?}") };
        assert!(failure.category == FailureCategory::Conflict && failure.message.contains("is full at"));
        store(&memories, "k", more(), 3_700_000).await.unwrap();

        // Expired memories are gone from the store too, and the rest is found as before.
        for memories in [&memories, &MemoryTools::new(notes.clone())] {
            let tenant = TenantId::new("tenant");
            assert_eq!(notes.count(&tenant, RegisterKind::Memory).await.unwrap(), 11);
            let asked = SearchArguments { query: "more".to_owned(), limit: None };
            let found = memories.search(asked, &tenant, Timestamp(3_700_000)).await.unwrap();
            assert_eq!(found["memories"].as_array().unwrap().len(), 1);
        }
    }
}
