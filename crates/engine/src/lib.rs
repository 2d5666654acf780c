//! Carries executions out: decides, records, then acts, and again.
//!
//! Reading order: [`Engine`] is the interface; [`execution_loop`] runs one execution; [`worker`] renews the process's
//! lease and resumes executions that other workers have left. The engine knows the core and its ports, nothing else.

mod active_executions;
mod call_task;
pub mod clock;
pub mod command;
mod command_replies;
pub mod control;
mod engine;
pub mod error;
mod execution_loop;
pub mod gaps;
mod journal_writer;
mod limit_counts;
pub mod name;
pub mod options;
mod paging;
mod permits;
pub mod report;
mod shared;
pub mod submit;
mod update;
mod worker;

pub use clock::SystemClock;
pub use command::ReplanCommand;
pub use engine::{Engine, StartRequest, StartedExecution};
pub use error::Error;
pub use options::EngineOptions;
pub use paging::all_pages;
pub use update::{ExecutionUpdate, UpdateContent};
