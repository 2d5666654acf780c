//! The application behind every surface: who may do what, what is done, and how it is presented.
//!
//! Surfaces (MCP, HTTP, dashboard, command line) parse a request, call this crate, and render the result.

pub mod alerts;
pub mod app;
pub mod auth;
pub mod cleanup;
pub mod command;
pub mod draft;
pub mod error;
pub mod executions;
pub mod forecast;
pub mod keys;
pub mod ledger;
pub mod limits;
pub mod optimize;
pub mod options;
pub mod plans;
pub mod principal;
pub mod question;
pub mod reader;
pub mod records;
pub mod refusals;
pub mod replan;
pub mod request_key;
pub mod rights;
pub mod rollback;
pub mod runtime;
pub mod scope;
pub mod shown_call;
pub mod start;
pub mod summary;
pub mod templates;
pub mod terse;
pub mod tool_calls;
pub mod tools;
pub mod verb;
pub mod view;
pub mod webhooks;
pub mod wording;

pub use rutter_engine::all_pages;
