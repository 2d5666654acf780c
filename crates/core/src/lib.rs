//! Plans, executions and journals as pure functions.
//!
//! Nothing here reads a clock, generates random numbers, waits or touches a file: time comes in as an
//! argument, calls go out as data. Reading order: [`plan`] describes the work, [`execution`] decides the
//! next actions, [`journal`] records the events.

pub mod actor;
pub mod canonical;
pub mod diagnostic;
pub mod encoding;
pub mod glob;
pub mod hash;
pub mod id;
pub mod limits;
pub mod pointer;
pub mod ranking;
pub mod text;
pub mod time;
pub mod tool;
pub mod wording;

pub mod redact;

pub mod plan;

pub mod policy;

pub mod preview;

pub mod journal;

pub mod execution;

pub mod port;

pub mod insight;

pub mod optimize;
