//! Two stores, the same random requests, the same replies.

mod both;
mod requests;

use both::Both;
use requests::Requests;
use rutter_testkit::conformance::ConformingStore;
use rutter_testkit::memory::MemoryStore;
use rutter_testkit::on_disk::on_sqlite;

const SEEDS: u64 = 24;
const REQUESTS: u32 = 250;

#[test]
fn sqlite_answers_as_the_store_in_memory() {
    let mut answered = 0;
    for seed in 0..SEEDS {
        on_sqlite(|store| answered += compare(&MemoryStore::default(), store, seed));
    }
    assert!(answered * 2 > u64::from(REQUESTS) * SEEDS, "most requests were refused: {answered} were not");
}

/// Sends the same requests to both; returns how many were not refused.
fn compare(one: &dyn ConformingStore, other: &dyn ConformingStore, seed: u64) -> u64 {
    let mut requests = Requests::new(Both::new(one, other, seed), seed);
    for _ in 0..REQUESTS {
        requests.next();
    }
    requests.look_at_everything();
    requests.both.answered
}
