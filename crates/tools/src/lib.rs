//! Real tools: MCP servers, HTTP APIs, commands and built-ins, behind the one port [`rutter_core::port::tools::Tools`].
//!
//! Reading order: [`config`] says what there is, [`connector`] is what each kind of server can do, and the registry
//! is the one path every call takes.

pub mod config;
pub mod connector;
pub mod mcp;
