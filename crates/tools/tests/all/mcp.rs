//! The connector to MCP servers: with real servers, with hostile ones, and with one that speaks the newest protocol.

mod fixture;
mod hostile;
mod http;
mod hung;
mod modern;
mod real;
mod results;
