//! The tests of the core that go through its public interface, in one binary.

#![allow(clippy::unwrap_used, reason = "a test may panic when it cannot continue")]

mod check_plans;
mod codes;
mod forecast;
mod fuzz;
mod insight;
mod journal;
mod plan_form;
mod preview_plans;
mod python_verifier;
mod read_plans;
mod tidy;
