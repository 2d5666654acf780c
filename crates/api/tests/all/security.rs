//! Attacks that must fail: enumerated cases against a real server over real connections.

mod doors;
mod forgery;
mod framing;
pub(crate) mod harbour;
mod names;
mod programs;
mod rights;
mod routes;
mod sizes;
mod slow;
