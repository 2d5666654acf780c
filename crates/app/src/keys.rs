//! Secrets of one installation: tokens for HTTP clients, and the key that seals questions. Created once, stored beside
//! the database, readable by their owner only.

use crate::auth::{AccessToken, secret};
use crate::principal::PrincipalRole;
use rutter_core::encoding::unhex;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub const AGENT: &str = "agent.token";
pub const OPERATOR: &str = "operator.token";
const SEAL: &str = "seal.key";

#[derive(Clone)]
pub struct InstallationKeys {
    pub seal: [u8; 32],
    /// For programs that connect over HTTP.
    pub agent: String,
    /// For people: it may also approve.
    pub operator: String,
}

impl InstallationKeys {
    /// Reads the files, or creates the missing ones. The caller must own the database.
    pub fn of(directory: &Path) -> io::Result<InstallationKeys> {
        let seal = read_or_create(&directory.join(SEAL), secret::fresh)?;
        Ok(InstallationKeys {
            seal: unhex(&seal).ok_or_else(|| broken(directory.join(SEAL)))?,
            agent: token(&directory.join(AGENT), "agent")?,
            operator: token(&directory.join(OPERATOR), "operator")?,
        })
    }
}

impl InstallationKeys {
    /// The configured tokens and the two of the installation.
    pub fn tokens(&self, mut configured: Vec<AccessToken>, operator: &str) -> Vec<AccessToken> {
        configured.push(AccessToken::new("agent", PrincipalRole::Agent, &self.agent));
        configured.push(AccessToken::new(operator, PrincipalRole::Operator, &self.operator));
        configured
    }
}

impl std::fmt::Debug for InstallationKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InstallationKeys")
    }
}

fn token(path: &Path, name: &str) -> io::Result<String> {
    let token = read_or_create(path, || secret::named(name, &secret::fresh()))?;
    let is_plain = token.len() >= 32 && token.bytes().all(|byte| byte.is_ascii_graphic());
    is_plain.then_some(token).ok_or_else(|| broken(path.to_owned()))
}

fn broken(path: PathBuf) -> io::Error {
    let message = format!("{} does not contain a valid key; remove it, and Rutter creates a new one", path.display());
    io::Error::new(io::ErrorKind::InvalidData, message)
}

fn read_or_create(path: &Path, make: impl FnOnce() -> String) -> io::Result<String> {
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
