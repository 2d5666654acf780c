//! The HTTP API on a real port, with a real database and real tools.

mod documents;
mod executions;
mod fuzzing;
mod harbour;
mod ledger;
mod limits;
mod manual;
mod plans;
mod records;
mod service;
mod settings;
mod signals;
mod streams;
mod tools;
