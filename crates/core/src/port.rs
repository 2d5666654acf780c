//! What the engine asks of the outside. Each port is small; whoever fulfils one knows the core and nothing above it.
//!
//! [`journal`] keeps executions and lets one worker at a time write each; [`query`] finds what was kept;
//! [`upkeep`] removes what is no longer to be kept; [`tools`] calls what plans name. All answers come as futures: a
//! store may be a file or a database far away.

pub mod error;
pub mod journal;
pub mod query;
pub mod tools;
pub mod upkeep;

pub use error::Error;

use std::pin::Pin;

/// What a port answers.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;
