//! The dashboard in a real browser: every page and button, by keyboard, in the dark, on a small screen, without scripts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]
#![cfg(target_os = "linux")]

mod stage;

use stage::Stage;

#[test]
fn every_page_can_be_used_by_everybody() {
    play("pages.mjs", 5);
}

#[test]
fn every_button_does_what_it_says() {
    play("buttons.mjs", 25);
}

#[test]
fn plans_and_executions_are_looked_at_and_steered() {
    play("steering.mjs", 12);
}

#[test]
fn pages_follow_what_happens_without_being_loaded_again() {
    play("live.mjs", 8);
}

#[test]
fn everything_can_be_reached_with_the_keyboard() {
    play("keyboard.mjs", 9);
}

#[test]
fn everything_works_without_scripts() {
    play("plain.mjs", 5);
}

#[test]
fn what_others_say_is_shown_and_never_run() {
    play("hostile.mjs", 4);
}

/// `scripts/pictures` keeps them.
#[test]
fn the_main_pages_can_be_pictured() {
    play("pictures.mjs", 8);
}

/// Every part of a scenario must have been played, so that none is left out unnoticed.
#[track_caller]
fn play(scenario: &str, parts: usize) {
    let (is_fine, said) = Stage::open().furnish().play(scenario);
    println!("{said}");
    let played = said.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(is_fine, "{scenario} did not go well:\n{said}");
    assert_eq!(played, parts, "{scenario} has another number of parts:\n{said}");
}
