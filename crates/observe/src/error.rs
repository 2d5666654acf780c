//! Errors of this crate.

use rutter_core::execution::input::Refusal;
use rutter_core::port;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is invalid, or not possible in the present state.
    #[error("{}", .0.message)]
    Refused(Refusal),
    #[error(transparent)]
    Store(#[from] port::Error),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error::Refused(refusal)
    }
}

impl Error {
    /// A stable code, documented in docs/errors.md.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Refused(refusal) => refusal.code,
            Error::Store(error) => error.code(),
        }
    }

    pub fn missing(what: &'static str, id: &str) -> Error {
        Error::Store(port::Error::NotFound { what, id: id.to_owned() })
    }
}
