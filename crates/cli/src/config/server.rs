//! `[server]` in rutter.toml: where it listens, under which names, and who may come in.

use crate::failure::Refusal;
use rutter_server::api;
use rutter_server::api::pace::Rate;
use rutter_server::auth::Token;
use rutter_server::guest::Role;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

pub(crate) const LISTEN: &str = "127.0.0.1:7411";

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerConfig {
    pub(crate) listen: SocketAddr,
    /// Names under which it may be addressed, beside those of loopback.
    pub(crate) hosts: Vec<String>,
    /// Whether the person at a client may approve there.
    pub(crate) ask_at_client: bool,
    pub(crate) tokens: BTreeMap<String, TokenConfig>,
    /// Requests over the HTTP API that only look, for each key or token; 0 is without limit.
    pub(crate) reads_per_second: u32,
    pub(crate) changes_per_second: u32,
}

/// A token that others were given, by where it is kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenConfig {
    role: Role,
    env: Option<String>,
    file: Option<PathBuf>,
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            listen: LISTEN.parse().expect("it is an address"),
            hosts: Vec::new(),
            ask_at_client: true,
            tokens: BTreeMap::new(),
            reads_per_second: api::Settings::default().look.per_second,
            changes_per_second: api::Settings::default().change.per_second,
        }
    }
}

/// The names of those who come in over the socket, and with the token beside the database. By its name it is known which
/// session is whose, and who may do what.
const RESERVED: &[&str] = &["local", "agent"];
/// Shorter ones can be guessed.
const TOKEN_BYTES_MIN: usize = 24;

impl ServerConfig {
    pub(crate) fn api(&self) -> api::Settings {
        // Twice as many at once as in a second.
        let rate = |per_second: u32| Rate { per_second, burst: per_second.saturating_mul(2) };
        api::Settings {
            look: rate(self.reads_per_second),
            change: rate(self.changes_per_second),
            ..api::Settings::default()
        }
    }

    pub(crate) fn tokens(&self) -> Result<Vec<Token>, Refusal> {
        let token = |(name, config): (&String, &TokenConfig)| {
            let wrong =
                |what: String| Refusal::new("config.invalid", format!("server.tokens.{name}: {what}"));
            if RESERVED.contains(&name.as_str()) {
                return Err(wrong(format!("{name:?} is what others are called here; choose another name")));
            }
            let secret = match (&config.env, &config.file) {
                (Some(variable), None) => std::env::var(variable)
                    .map_err(|_| wrong(format!("the environment has no {variable}")))?,
                (None, Some(path)) => std::fs::read_to_string(path)
                    .map_err(|error| wrong(format!("cannot read {}: {error}", path.display())))?,
                _ => return Err(wrong("give either env or file, where the token is kept".to_owned())),
            };
            let secret = secret.trim();
            if secret.len() < TOKEN_BYTES_MIN {
                return Err(wrong(format!("a token has at least {TOKEN_BYTES_MIN} characters")));
            }
            Ok(Token::new(name, config.role, secret))
        };
        self.tokens.iter().map(token).collect()
    }
}
