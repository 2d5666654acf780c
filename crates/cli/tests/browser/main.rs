//! The dashboard in a real browser: every page and button, by keyboard, in the dark, on a small screen, without scripts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]
#![cfg(target_os = "linux")]

mod stage;

use stage::Stage;

/// Every part of a scenario must have been played, so that none is left out unnoticed.
#[track_caller]
fn play(scenario: &str, parts: usize) {
    let (is_fine, said) = Stage::open().furnish().play(scenario);
    println!("{said}");
    let played = said.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(is_fine, "{scenario} did not go well:\n{said}");
    assert_eq!(played, parts, "{scenario} has another number of parts:\n{said}");
}

#[test]
fn every_page_is_there_and_can_be_used_by_everybody() {
    play("pages.mjs", 4);
}
