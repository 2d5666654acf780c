//! Every event there is, in words.

#[path = "../../../../core/tests/journal/samples.rs"]
mod samples;

use super::{happened, payloads};
use std::convert::Infallible;

#[test]
fn every_event_can_be_told_and_everything_it_carries_is_named() {
    let mut told = String::new();
    for event in samples::all_plain() {
        let mut carried = 0;
        let mut count = |_| -> Result<(), Infallible> {
            carried += 1;
            Ok(())
        };
        let Ok(_) = event.clone().try_map(&mut count);
        assert_eq!(payloads(&event).len(), carried, "{event:?}");
        told.push_str(&format!("{}: {}\n", event.kind(), happened(&event)));
    }
    insta::assert_snapshot!(told);
}
