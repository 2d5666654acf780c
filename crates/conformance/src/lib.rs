//! What the official MCP conformance suite runs against: Rutter's own HTTP listener and its own MCP client.
//!
//! [`fixtures`] are the tools, prompts and resources the suite asks for, behind the door, the router and the guard of the
//! product; [`product`] is the real surface over a real database. Both stand on a [`stand`]. [`client`] plays the suite's
//! scenarios for clients with the connector that reaches MCP servers for plans. Nothing here is part of the program.

pub mod client;
pub mod fixtures;
pub mod product;
pub mod stand;
