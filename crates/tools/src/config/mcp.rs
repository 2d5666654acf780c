//! MCP servers: a child process with `command`, or `url` for one that is reached over HTTP.

pub mod import;

use super::{CallRate, ServerSettings, ToolSettings, span_maybe};
use rutter_core::time::Millis;
use rutter_core::tool::Safety;
use rutter_core::tool::attempts::{AttemptSettings, RetrySettings};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use url::Url;

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "McpServerTable")]
pub struct McpServerConfig {
    pub reach: McpTransport,
    /// How long it may take until the server answers for the first time; the default is a minute.
    pub start_timeout: Option<Millis>,
    pub disabled: bool,
    pub common: ServerSettings,
}

impl McpServerConfig {
    pub fn new(reach: McpTransport) -> McpServerConfig {
        McpServerConfig { reach, start_timeout: None, disabled: false, common: ServerSettings::default() }
    }
}

/// How the server is reached.
#[derive(Clone, Debug)]
pub enum McpTransport {
    Child(McpChildConfig),
    Http(McpHttpConfig),
}

/// A program that speaks MCP on its standard input and output.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct McpChildConfig {
    pub command: String,
    pub args: Vec<String>,
    /// Added to the few variables every child gets.
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
}

/// A server that is reached over HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct McpHttpConfig {
    pub url: Url,
    pub headers: BTreeMap<String, String>,
}

/// Values are left out: they often hold tokens.
impl fmt::Debug for McpChildConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.env.keys().collect();
        f.debug_struct("McpChildConfig").field("command", &self.command).field("env", &names).finish_non_exhaustive()
    }
}

impl fmt::Debug for McpHttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.headers.keys().collect();
        f.debug_struct("McpHttpConfig").field("host", &self.url.host_str()).field("headers", &names).finish()
    }
}

/// The table as written. [`ServerSettings`] is spelled out, because a flattened struct cannot refuse unknown keys.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct McpServerTable {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    #[serde(deserialize_with = "span_maybe")]
    start_timeout: Option<Millis>,
    disabled: bool,
    trust: bool,
    safety: Option<Safety>,
    #[serde(deserialize_with = "span_maybe")]
    timeout: Option<Millis>,
    #[serde(deserialize_with = "span_maybe")]
    timeout_max: Option<Millis>,
    retry: Option<RetrySettings>,
    #[serde(deserialize_with = "span_maybe")]
    key_window: Option<Millis>,
    concurrency: Option<u32>,
    rate: Option<CallRate>,
    tools: BTreeMap<String, ToolSettings>,
}

impl TryFrom<McpServerTable> for McpServerConfig {
    type Error = String;

    fn try_from(written: McpServerTable) -> Result<McpServerConfig, String> {
        let McpServerTable { command, args, env, cwd, url, headers, start_timeout, disabled, .. } = written;
        let reach = match (command, url) {
            (Some(command), None) => {
                if !headers.is_empty() {
                    return Err("`headers` go with `url`; a server with `command` has `env`".to_owned());
                }
                McpTransport::Child(child(command, args, env, cwd)?)
            }
            (None, Some(url)) => {
                if !args.is_empty() || !env.is_empty() || cwd.is_some() {
                    return Err(
                        "`args`, `env` and `cwd` go with `command`; a server with `url` has `headers`".to_owned()
                    );
                }
                McpTransport::Http(http(&url, headers)?)
            }
            (Some(_), Some(_)) => {
                return Err("expected one of `command` and `url`, got both; remove one".to_owned());
            }
            (None, None) => return Err("expected `command` or `url`, got neither".to_owned()),
        };
        let common = ServerSettings {
            trust: written.trust,
            safety: written.safety,
            attempts: AttemptSettings {
                timeout: written.timeout,
                timeout_max: written.timeout_max,
                retry: written.retry,
            },
            key_window: written.key_window,
            concurrency: written.concurrency,
            rate: written.rate,
            tools: written.tools,
        };
        Ok(McpServerConfig { reach, start_timeout, disabled, common })
    }
}

fn child(
    command: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
) -> Result<McpChildConfig, String> {
    if command.trim().is_empty() {
        return Err("`command` is empty; expected the name or path of a program".to_owned());
    }
    if let Some(name) = env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
        return Err(format!("{name:?} cannot be the name of a variable; remove it from `env`"));
    }
    Ok(McpChildConfig { command, args, env, cwd })
}

/// Headers that are set for every request, and would be sent twice.
const RESERVED: &[&str] =
    &["accept", "content-type", "content-length", "host", "last-event-id", "mcp-protocol-version", "mcp-session-id"];

fn http(url: &str, headers: BTreeMap<String, String>) -> Result<McpHttpConfig, String> {
    let url = Url::parse(url).map_err(|error| format!("`url` cannot be read: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`url` starts with `{}:`; expected http or https", url.scheme()));
    }
    for (name, value) in &headers {
        if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(format!("the header `{name}` belongs to the protocol; remove it"));
        }
        let readable = reqwest::header::HeaderName::try_from(name).is_ok()
            && reqwest::header::HeaderValue::try_from(value).is_ok();
        if !readable {
            return Err(format!("the header {name:?} or its value has characters that cannot be sent"));
        }
    }
    Ok(McpHttpConfig { url, headers })
}

#[cfg(test)]
mod tests;
