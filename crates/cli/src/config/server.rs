//! `[server]` in rutter.toml: the listen address, host names and tokens.

use crate::failure::CommandRefusal;
use rutter_api::rate_limit::RequestRate;
use rutter_app::auth::AccessToken;
use rutter_app::principal::PrincipalRole;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

pub(crate) const LISTEN: &str = "127.0.0.1:7411";

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerConfig {
    pub(crate) listen: SocketAddr,
    /// Accepted host names, besides those of loopback.
    pub(crate) hosts: Vec<String>,
    /// Whether the client's user may approve there.
    pub(crate) ask_at_client: bool,
    pub(crate) tokens: BTreeMap<String, TokenConfig>,
    /// Reads over the HTTP API per second, for each key or token; 0 is unlimited.
    pub(crate) reads_per_second: u32,
    pub(crate) changes_per_second: u32,
}

/// An access token, by where it is stored.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenConfig {
    role: PrincipalRole,
    env: Option<String>,
    file: Option<PathBuf>,
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            listen: LISTEN.parse().expect("LISTEN is a valid address"),
            hosts: Vec::new(),
            ask_at_client: true,
            tokens: BTreeMap::new(),
            reads_per_second: rutter_api::ApiSettings::default().reads.per_second,
            changes_per_second: rutter_api::ApiSettings::default().changes.per_second,
        }
    }
}

/// Names of the principals at the socket and of the token beside the database. Sessions and rights depend on the name,
/// so no other token may have it.
const RESERVED: &[&str] = &["local", "agent"];
/// Shorter tokens can be guessed.
const TOKEN_BYTES_MIN: usize = 24;

impl ServerConfig {
    pub(crate) fn api(&self) -> rutter_api::ApiSettings {
        // The burst is what two seconds allow.
        let rate = |per_second: u32| RequestRate { per_second, burst: per_second.saturating_mul(2) };
        rutter_api::ApiSettings {
            reads: rate(self.reads_per_second),
            changes: rate(self.changes_per_second),
            ..rutter_api::ApiSettings::default()
        }
    }

    pub(crate) fn tokens(&self) -> Result<Vec<AccessToken>, CommandRefusal> {
        let token = |(name, config): (&String, &TokenConfig)| {
            let wrong = |what: String| CommandRefusal::new("config.invalid", format!("server.tokens.{name}: {what}"));
            if RESERVED.contains(&name.as_str()) {
                return Err(wrong(format!("{name:?} is a reserved name; choose another")));
            }
            let secret = match (&config.env, &config.file) {
                (Some(variable), None) => {
                    std::env::var(variable).map_err(|_| wrong(format!("the variable {variable} is not set")))?
                }
                (None, Some(path)) => std::fs::read_to_string(path)
                    .map_err(|error| wrong(format!("cannot read {}: {error}", path.display())))?,
                _ => return Err(wrong("give either env or file, where the token is stored".to_owned())),
            };
            let secret = secret.trim();
            if secret.len() < TOKEN_BYTES_MIN {
                return Err(wrong(format!("a token has at least {TOKEN_BYTES_MIN} characters")));
            }
            Ok(AccessToken::new(name, config.role, secret))
        };
        self.tokens.iter().map(token).collect()
    }
}
