//! What stands on the pages, and what their forms do.

use crate::deck::Deck;
use crate::harbour::Harbour;

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_there_before_anything_happened() {
    let deck = Deck::new().await;
    let harbour = Harbour::open(&deck).await;
    for (path, expected) in [
        ("/", "Nothing has been planned here yet"),
        ("/executions", "No execution yet"),
        ("/approvals", "Nothing waits for you"),
        ("/journal", "The journal is empty"),
        ("/help", "How an execution stands"),
    ] {
        let page = harbour.page(path).await;
        assert!(page.contains(expected), "{path}: {page}");
    }
}
