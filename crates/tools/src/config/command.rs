//! Commands: each tool is one program with fixed arguments and named slots. Nothing else can be started.

use super::{CallRate, ServerSettings, ToolSettings, span, span_maybe};
use rutter_core::time::Millis;
use rutter_core::tool::attempts::{AttemptSettings, RetrySettings};
use rutter_core::tool::{FailureCategory, Safety};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How long a program may run when nothing is configured.
const RUN_MAX: Millis = Millis::seconds(300);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CommandServerConfig {
    /// The working directory of its programs, which they may write to; by default a directory of its own.
    pub cwd: Option<PathBuf>,
    /// Added to the few variables every program gets.
    pub env: BTreeMap<String, String>,
    /// Variables of our own environment that its programs get too.
    pub env_pass: Vec<String>,
    /// Between asking a program to end and killing it.
    #[serde(deserialize_with = "span")]
    pub grace: Millis,
    pub safety: Option<Safety>,
    #[serde(deserialize_with = "span_maybe")]
    pub timeout: Option<Millis>,
    #[serde(deserialize_with = "span_maybe")]
    pub timeout_max: Option<Millis>,
    pub retry: Option<RetrySettings>,
    /// How long its tools remember a key; the default is a day.
    #[serde(deserialize_with = "span_maybe")]
    pub key_window: Option<Millis>,
    pub concurrency: Option<u32>,
    pub rate: Option<CallRate>,
    pub tools: BTreeMap<String, CommandToolConfig>,
}

impl Default for CommandServerConfig {
    fn default() -> CommandServerConfig {
        CommandServerConfig {
            cwd: None,
            env: BTreeMap::new(),
            env_pass: Vec::new(),
            grace: Millis::seconds(10),
            safety: None,
            timeout: None,
            timeout_max: None,
            retry: None,
            key_window: None,
            concurrency: None,
            rate: None,
            tools: BTreeMap::new(),
        }
    }
}

impl CommandServerConfig {
    /// The settings of every kind of server. The operator wrote the definitions, so there are no annotations to trust.
    pub fn common(&self) -> ServerSettings {
        let settings = |tool: &CommandToolConfig| ToolSettings {
            safety: tool.safety,
            timeout: tool.timeout,
            // A program always has a limit: its timeout, or the usual one.
            timeout_max: tool.timeout_max.or(self.timeout_max).or(tool.timeout).or(self.timeout).or(Some(RUN_MAX)),
            retry: tool.retry.clone(),
            key_parameter: tool.key_parameter.clone(),
            sends_key: false,
            grace: Some(self.grace).filter(|grace| *grace > Millis(0)),
            key_window: tool.key_window,
            concurrency: tool.concurrency,
            rate: tool.rate,
            hidden: tool.hidden,
        };
        ServerSettings {
            trust: false,
            safety: self.safety,
            attempts: AttemptSettings {
                timeout: self.timeout,
                timeout_max: self.timeout_max,
                retry: self.retry.clone(),
            },
            key_window: self.key_window,
            concurrency: self.concurrency,
            rate: self.rate,
            tools: self.tools.iter().map(|(name, tool)| (name.clone(), settings(tool))).collect(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CommandToolConfig {
    /// The program by its absolute path, and its arguments. `{name}` stands for a parameter; an argument whose
    /// parameter was not given is left out. Braces are doubled to stand for themselves.
    pub argv: Vec<String>,
    pub title: Option<String>,
    pub description: String,
    /// JSON Schema of the parameters, an object; without it there are none.
    pub input: Option<Value>,
    pub output: Option<Value>,
    pub stdin: StdinFormat,
    pub result: ResultFormat,
    /// Parameters may begin with `-`, and so be options to the program.
    pub options: bool,
    /// Of calls whose plan gives them none; without `timeout_max` also the most a plan may give.
    #[serde(deserialize_with = "span_maybe")]
    pub timeout: Option<Millis>,
    #[serde(deserialize_with = "span_maybe")]
    pub timeout_max: Option<Millis>,
    pub retry: Option<RetrySettings>,
    /// How long its tools remember a key; the default is a day.
    #[serde(deserialize_with = "span_maybe")]
    pub key_window: Option<Millis>,
    pub memory_mib: u64,
    pub cpu_seconds: u64,
    pub processes: u64,
    pub files: u64,
    /// Of standard output; a program that writes more is ended.
    pub output_kib: u64,
    pub network: bool,
    /// Beside the system's programs and the working directory.
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    /// What exit codes other than 0 mean, by number. After an unlisted one the outcome is unknown.
    pub exit: BTreeMap<String, ExitMeaning>,
    pub safety: Option<Safety>,
    pub key_parameter: Option<String>,
    pub concurrency: Option<u32>,
    pub rate: Option<CallRate>,
    pub hidden: bool,
}

impl Default for CommandToolConfig {
    fn default() -> CommandToolConfig {
        CommandToolConfig {
            argv: Vec::new(),
            title: None,
            description: String::new(),
            input: None,
            output: None,
            stdin: StdinFormat::None,
            result: ResultFormat::Json,
            options: false,
            timeout: None,
            timeout_max: None,
            retry: None,
            key_window: None,
            memory_mib: 512,
            cpu_seconds: 60,
            processes: 64,
            files: 256,
            output_kib: 1024,
            network: false,
            read: Vec::new(),
            write: Vec::new(),
            exit: BTreeMap::new(),
            safety: None,
            key_parameter: None,
            concurrency: None,
            rate: None,
            hidden: false,
        }
    }
}

/// What a program gets on standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StdinFormat {
    None,
    /// The parameters, as one line of JSON.
    Json,
}

/// How standard output is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultFormat {
    Json,
    /// As one text, without the newline at the end.
    Text,
    /// As a list of texts.
    Lines,
}

/// What an exit code means: `"done"`, `{ not_done = "invalid_input" }`, `{ maybe = "unavailable" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitMeaning {
    Done,
    NotDone(FailureCategory),
    Maybe(FailureCategory),
}
