//! Real tools: MCP servers, HTTP APIs, commands and built-ins, behind the one port [`rutter_core::port::tools::Tools`].
//!
//! Reading order: [`config`] says what there is, [`connector`] is what each kind of server can do, and [`registry`]
//! is the one path every call takes.

pub mod assemble;
pub mod bell;
pub mod builtin;
pub mod child;
pub mod command;
pub mod config;
pub mod connector;
pub mod guard;
pub mod http;
pub mod limit;
pub mod mcp;
pub mod post;
pub mod registry;
pub mod search;
pub mod secret;
pub mod stats;
