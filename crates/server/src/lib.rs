//! How agents and people reach Rutter: MCP over a socket, over pipes and over HTTP.
//!
//! Whoever comes in is a [`guest::Guest`] with certain rights; what is asked goes to the [`desk::Desk`], which has the
//! engine and the ports behind it; what cannot be done is told as a [`fault::Fault`].

pub mod api;
pub mod auth;
pub mod dashboard;
mod deed;
pub mod desk;
pub mod draft;
pub mod drawing;
pub mod fault;
pub mod guest;
pub mod http;
pub mod insight;
pub mod keys;
pub mod limits;
pub mod lines;
pub mod live;
pub mod mcp;
pub mod metrics;
pub mod reference;
pub mod socket;
pub mod summary;
pub mod trace;
pub mod watch;
pub mod words;
