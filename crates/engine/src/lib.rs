//! Carries executions out: decides, records, then acts, and again.
//!
//! Reading order: [`Engine`] is what everybody asks; [`drive`] is the loop of one execution; [`worker`] keeps the
//! process's right to drive and takes up what others have left. The engine knows the core and its ports, nothing else.

mod answers;
mod berths;
pub mod clock;
pub mod control;
mod defaults;
mod drive;
mod engine;
pub mod error;
mod event;
mod fleet;
mod flight;
mod logbook;
pub mod name;
pub mod options;
pub mod signal;
pub mod submit;
mod worker;

pub use clock::Clock;
pub use engine::{Engine, Start, Started};
pub use error::Error;
pub use event::{Happening, Live};
pub use options::Options;
pub use signal::Signal;
