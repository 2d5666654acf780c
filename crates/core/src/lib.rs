//! Plans, executions and journals as pure functions.
//!
//! Nothing here reads a clock, rolls a die, waits or touches a file: time comes in as an argument,
//! calls go out as data. Reading order: [`plan`] says what is to be done, [`execution`] decides what
//! happens next, [`journal`] keeps what happened.

pub mod actor;
pub mod hash;
pub mod id;
pub mod limits;
pub mod mutation;
pub mod time;
pub mod tool;

pub mod redact;

pub mod plan;

pub mod journal;

pub mod execution;

pub mod port;

pub mod insight;
