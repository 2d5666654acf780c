//! What the engine asks of the outside. Each port is small; whoever fulfils one knows the core and nothing above it.
//!
//! [`journal`] keeps executions and lets one worker at a time write each; [`query`] finds what was kept, [`feed`]
//! follows it as it grows, [`proof`] shows that it is what was written; [`upkeep`] removes what is no longer to be
//! kept; [`tools`] calls what plans name; [`register`] remembers small things, [`outbox`] what is still to be sent;
//! [`bell`] starts what the operator named. All answers come as futures: a store may be a file or a database far away.

pub mod bell;
pub mod error;
pub mod feed;
pub mod journal;
pub mod outbox;
pub mod proof;
pub mod query;
pub mod register;
pub mod tools;
pub mod upkeep;

pub use error::Error;

use std::pin::Pin;

/// What a port answers.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;
