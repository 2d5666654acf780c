//! What the official MCP conformance suite runs against: Rutter's own HTTP listener and its own MCP client.
//!
//! [`fixtures`] are the tools, prompts and resources that the suite expects, behind the gate, the router and the guard
//! of the product; [`product`] is the real surface over a real database. [`serving`] serves both. [`client`] runs the
//! suite's client scenarios with the connector that calls MCP servers for plans. Nothing here is part of the program.

pub mod client;
pub mod fixtures;
pub mod product;
pub mod serving;
