//! The settings of tools in `rutter.toml`. Unknown keys are refused.
//!
//! Each kind of server has its own table and its own file here; names are shared: `git.commit` is the tool `commit` of
//! the server `git`, of whatever kind.

pub mod command;
pub mod http;
pub mod mcp;
pub mod secret;

use rutter_core::limits;
use rutter_core::time::Millis;
use rutter_core::tool::Safety;
use rutter_core::tool::attempts::{AttemptSettings, RetrySettings};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// MCP servers.
    pub servers: BTreeMap<String, mcp::McpServerConfig>,
    pub http: BTreeMap<String, http::HttpServerConfig>,
    pub commands: BTreeMap<String, command::CommandServerConfig>,
    pub secrets: BTreeMap<String, secret::SecretSource>,
    pub limits: CallLimits,
    pub notify: BTreeMap<String, NotificationChannel>,
    pub alerts: AlertSettings,
}

/// The settings of a server of any kind.
#[derive(Clone, Debug, Default)]
pub struct ServerSettings {
    /// Trust the server's annotations about safety.
    pub trust: bool,
    /// Of its tools that have no `safety` of their own.
    pub safety: Option<Safety>,
    /// Of its tools, where they have none of their own.
    pub attempts: AttemptSettings,
    /// The same.
    pub key_window: Option<Millis>,
    /// Calls at once; the default is 8.
    pub concurrency: Option<u32>,
    pub rate: Option<CallRate>,
    pub tools: BTreeMap<String, ToolSettings>,
}

/// The operator's settings of one tool, which override what its server says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolSettings {
    pub safety: Option<Safety>,
    #[serde(deserialize_with = "span_maybe")]
    pub timeout: Option<Millis>,
    #[serde(deserialize_with = "span_maybe")]
    pub timeout_max: Option<Millis>,
    pub retry: Option<RetrySettings>,
    /// The parameter in which the tool honours an idempotency key.
    pub key_parameter: Option<String>,
    /// Every call is sent with its key, beside the parameters.
    #[serde(skip)]
    pub sends_key: bool,
    /// How long a call may act on after its time is up.
    #[serde(skip)]
    pub grace: Option<Millis>,
    /// How long the tool remembers a key; the default is a day.
    #[serde(deserialize_with = "span_maybe")]
    pub key_window: Option<Millis>,
    pub concurrency: Option<u32>,
    pub rate: Option<CallRate>,
    /// Not offered at all.
    pub hidden: bool,
}

impl ToolSettings {
    pub fn attempts(&self) -> AttemptSettings {
        AttemptSettings { timeout: self.timeout, timeout_max: self.timeout_max, retry: self.retry.clone() }
    }
}

impl ServerSettings {
    /// The settings of one tool's attempts: its own, then the server's.
    pub fn attempts_of(&self, tool: &str) -> AttemptSettings {
        let own = self.tools.get(tool).map(ToolSettings::attempts).unwrap_or_default();
        own.or(&self.attempts)
    }

    /// Settings that contradict each other, with their location below the server's table.
    pub fn problems(&self) -> Vec<String> {
        let of_server = self.attempts.problem().or_else(|| window_problem(self.key_window));
        let of_tools = self.tools.iter().filter_map(|(tool, settings)| {
            let problem = self.attempts_of(tool).problem().or_else(|| window_problem(settings.key_window));
            let problem = problem.filter(|problem| Some(problem) != of_server.as_ref())?;
            Some(format!(".tools.{tool}: {problem}"))
        });
        of_server.iter().map(|problem| format!(": {problem}")).chain(of_tools).collect()
    }
}

fn window_problem(window: Option<Millis>) -> Option<String> {
    let max = limits::KEY_WINDOW_MAX;
    let is_wrong = window.is_some_and(|window| window == Millis(0) || window > max);
    is_wrong.then(|| format!("`key_window` must be more than 0 and at most {max}"))
}

/// So many calls per span, `"5/s"`, `"100/m"`, `"20/h"`; as many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRate {
    pub calls: u32,
    pub per: Millis,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CallLimits {
    /// Calls at once, of all executions.
    #[serde(deserialize_with = "at_least_one")]
    pub calls: u32,
    #[serde(deserialize_with = "at_least_one")]
    pub calls_per_tenant: u32,
    /// Of servers that have no `concurrency` of their own.
    #[serde(deserialize_with = "at_least_one")]
    pub calls_per_server: u32,
    /// Failures in a row that open a server's circuit breaker.
    #[serde(deserialize_with = "at_least_one")]
    pub breaker_failures: u32,
    #[serde(deserialize_with = "span")]
    pub breaker_pause: Millis,
}

impl Default for CallLimits {
    fn default() -> CallLimits {
        CallLimits {
            calls: 64,
            calls_per_tenant: 64,
            calls_per_server: 8,
            breaker_failures: 5,
            breaker_pause: Millis::seconds(30),
        }
    }
}

/// A channel of `notify.send`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum NotificationChannel {
    /// The notification is stored in the database, where `notify.recent` finds it.
    Log {},
    /// A POST of JSON; any 2xx means that it was delivered.
    Webhook {
        url: String,
        #[serde(default)]
        allow: Vec<String>,
    },
    /// Started with the notification as JSON on standard input; exit code 0 means that it was delivered.
    Command {
        argv: Vec<String>,
        #[serde(default)]
        network: bool,
    },
}

/// The programs that alerts may start.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AlertSettings {
    /// By the names that rules use.
    pub commands: BTreeMap<String, AlertCommandConfig>,
}

/// Started with the alert as JSON on standard input.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlertCommandConfig {
    /// The absolute path; no shell is involved.
    pub program: PathBuf,
    #[serde(default)]
    pub arguments: Vec<String>,
    /// May reach other machines.
    #[serde(default)]
    pub network: bool,
    /// The default is half a minute.
    #[serde(default, deserialize_with = "span_maybe")]
    pub timeout: Option<Millis>,
}

/// Reads `30s`, `5m`, `1h30m`.
pub fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Millis, D::Error> {
    let text = String::deserialize(deserializer)?;
    Millis::parse(&text)
        .ok_or_else(|| serde::de::Error::custom(format!("expected a span such as `30s` or `5m`, got {text:?}")))
}

pub fn span_maybe<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Millis>, D::Error> {
    span(deserializer).map(Some)
}

/// Nothing would ever be called with a limit of zero.
fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let limit = u32::deserialize(deserializer)?;
    let refused = || serde::de::Error::custom("expected at least 1, got 0");
    (limit > 0).then_some(limit).ok_or_else(refused)
}

impl<'de> Deserialize<'de> for CallRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CallRate, D::Error> {
        let text = String::deserialize(deserializer)?;
        let read = || {
            let (calls, unit) = text.split_once('/')?;
            let per = match unit.trim() {
                "s" => Millis::seconds(1),
                "m" => Millis::seconds(60),
                "h" => Millis::hours(1),
                _ => return None,
            };
            let calls = calls.trim().parse().ok().filter(|calls| *calls > 0)?;
            Some(CallRate { calls, per })
        };
        read()
            .ok_or_else(|| serde::de::Error::custom(format!("expected a rate such as `5/s` or `100/m`, got {text:?}")))
    }
}
