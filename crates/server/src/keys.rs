//! Secrets of one installation: tokens for guests over HTTP, and the key that seals questions. Made once, kept beside
//! the database, readable by their owner alone.

use crate::auth::secret;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub const AGENT: &str = "agent.token";
pub const OPERATOR: &str = "operator.token";
const SEAL: &str = "seal.key";

#[derive(Clone)]
pub struct Keys {
    pub seal: [u8; 32],
    /// For programs that connect over HTTP.
    pub agent: String,
    /// For people: with it one may also approve.
    pub operator: String,
}

impl Keys {
    /// Reads them, or makes those that are not there. Whoever calls has the database to itself.
    pub fn of(directory: &Path) -> io::Result<Keys> {
        let seal = kept(&directory.join(SEAL), secret::fresh)?;
        Ok(Keys {
            seal: unhex(&seal).ok_or_else(|| broken(directory.join(SEAL)))?,
            agent: token(&directory.join(AGENT), "agent")?,
            operator: token(&directory.join(OPERATOR), "operator")?,
        })
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

fn token(path: &Path, name: &str) -> io::Result<String> {
    let token = kept(path, || secret::named(name, &secret::fresh()))?;
    let is_plain = token.len() >= 32 && token.bytes().all(|byte| byte.is_ascii_graphic());
    is_plain.then_some(token).ok_or_else(|| broken(path.to_owned()))
}

fn broken(path: PathBuf) -> io::Error {
    let message = format!("{} does not hold what Rutter put there; remove it for a new one", path.display());
    io::Error::new(io::ErrorKind::InvalidData, message)
}

fn kept(path: &Path, make: impl FnOnce() -> String) -> io::Result<String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = make();
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(format!("{text}\n").as_bytes())?;
            file.sync_all()?;
            Ok(text)
        }
        Err(error) => Err(error),
    }
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let bytes: Option<Vec<u8>> =
        (0..32).map(|at| u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()).collect();
    bytes?.try_into().ok().filter(|_| text.len() == 64)
}
