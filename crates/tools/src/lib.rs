//! Tools: MCP servers, HTTP APIs, commands and built-ins, behind the port [`rutter_core::port::tools::ToolGateway`].
//!
//! Reading order: [`config`] has the settings, [`connector`] is the interface of every kind of server, and
//! [`registry`] is the one path every call takes.

pub mod alert_commands;
pub mod assemble;
pub mod builtin;
pub mod child;
pub mod command;
pub mod config;
pub mod connector;
pub mod guard;
pub mod http;
pub mod http_sender;
pub mod limit;
pub mod mcp;
pub mod registry;
pub mod search;
pub mod secret;
pub mod stats;
pub mod tls;
