//! The dashboard in a real browser: every page and button, by keyboard, dark, on a small screen, without scripts.
#![cfg(target_os = "linux")]

mod fixture;

use fixture::BrowserFixture;

#[test]
fn every_page_is_accessible() {
    play("pages.mjs", 5);
}

#[test]
fn every_button_works() {
    play("buttons.mjs", 25);
}

#[test]
fn plans_and_executions_are_viewed_and_controlled() {
    play("steering.mjs", 12);
}

#[test]
fn pages_update_without_being_reloaded() {
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
fn foreign_text_is_displayed_and_never_executed() {
    play("hostile.mjs", 4);
}

/// `scripts/pictures` stores them.
#[test]
fn the_main_pages_can_be_pictured() {
    play("pictures.mjs", 8);
}

/// Every part of a scenario must run, so that none is left out unnoticed.
#[track_caller]
fn play(scenario: &str, parts: usize) {
    let (is_fine, message) = BrowserFixture::open().furnish().play(scenario);
    println!("{message}");
    let played = message.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(is_fine, "{scenario} failed:\n{message}");
    assert_eq!(played, parts, "{scenario} has another number of parts:\n{message}");
}
