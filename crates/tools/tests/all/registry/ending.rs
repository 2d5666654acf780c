//! Closing: all servers are closed at once, and none can delay that for long.

use crate::registry::fixture::{Listing, Puppet, RegistryFixture, plain};
use std::sync::atomic::Ordering;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn all_servers_are_closed_although_one_hangs() {
    let puppets: Vec<_> = (0..5).map(|_| Puppet::new(vec![plain("x")])).collect();
    *puppets[0].listing.lock().unwrap() = Listing::Hangs;
    let names = ["a", "b", "c", "d", "e"];
    let fixture = RegistryFixture::new(&names.into_iter().zip(&puppets).collect::<Vec<_>>());
    let began = Instant::now();
    fixture.registry.close().await;
    assert_eq!(began.elapsed().as_secs(), 15);
    assert!(puppets.iter().all(|puppet| puppet.closed.load(Ordering::SeqCst) == 1));
    *puppets[0].listing.lock().unwrap() = Listing::Answers;
    let began = Instant::now();
    fixture.registry.close().await;
    assert_eq!(began.elapsed().as_secs(), 0);
}
