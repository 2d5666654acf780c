//! Real tools: MCP servers, HTTP APIs, commands and built-ins, behind the one port [`rutter_core::port::tools::Tools`].
//!
//! Reading order: [`config`] says what there is, [`connector`] is what each kind of server can do, and the registry
//! is the one path every call takes.

pub mod builtin;
pub mod child;
pub mod command;
pub mod config;
pub mod connector;
