//! Commands: each tool is one program with fixed arguments and named slots. What is not written here cannot be started.

use super::{Common, Rate, ToolSettings, span};
use rutter_core::time::Millis;
use rutter_core::tool::{Category, Safety};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Where its programs start and may write; a directory of its own unless said otherwise.
    pub cwd: Option<PathBuf>,
    /// Added to the few variables every program gets.
    pub env: BTreeMap<String, String>,
    /// Variables of our own environment that its programs get too.
    pub env_pass: Vec<String>,
    /// Between asking a program to end and killing it.
    #[serde(deserialize_with = "span")]
    pub grace: Millis,
    pub concurrency: Option<u32>,
    pub rate: Option<Rate>,
    pub tools: BTreeMap<String, Tool>,
}

impl Default for Server {
    fn default() -> Server {
        Server {
            cwd: None,
            env: BTreeMap::new(),
            env_pass: Vec::new(),
            grace: Millis::seconds(10),
            concurrency: None,
            rate: None,
            tools: BTreeMap::new(),
        }
    }
}

impl Server {
    /// What holds for servers of every kind. The operator wrote the definitions, so there is nobody else to trust.
    pub fn common(&self) -> Common {
        let settings = |tool: &Tool| ToolSettings {
            safety: tool.safety,
            key_parameter: tool.key_parameter.clone(),
            concurrency: tool.concurrency,
            rate: tool.rate,
            hidden: tool.hidden,
        };
        Common {
            trust: false,
            concurrency: self.concurrency,
            rate: self.rate,
            tools: self.tools.iter().map(|(name, tool)| (name.clone(), settings(tool))).collect(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tool {
    /// The program by its whole path, and its arguments. `{name}` stands for a parameter; an argument whose parameter
    /// was not given is left out. Braces are doubled to stand for themselves.
    pub argv: Vec<String>,
    pub title: Option<String>,
    pub description: String,
    /// JSON Schema of the parameters, an object; without it there are none.
    pub input: Option<Value>,
    pub output: Option<Value>,
    pub stdin: Stdin,
    pub result: ResultForm,
    /// Parameters may begin with `-`, and so be options to the program.
    pub options: bool,
    /// At most; the plan may allow less.
    #[serde(deserialize_with = "span")]
    pub timeout: Millis,
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
    /// What exit codes other than 0 mean, by number. One that is not listed leaves open what happened.
    pub exit: BTreeMap<String, Exit>,
    pub safety: Option<Safety>,
    pub key_parameter: Option<String>,
    pub concurrency: Option<u32>,
    pub rate: Option<Rate>,
    pub hidden: bool,
}

impl Default for Tool {
    fn default() -> Tool {
        Tool {
            argv: Vec::new(),
            title: None,
            description: String::new(),
            input: None,
            output: None,
            stdin: Stdin::None,
            result: ResultForm::Json,
            options: false,
            timeout: Millis::seconds(300),
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

/// What a program is given on standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    None,
    /// The parameters, as one line of JSON.
    Json,
}

/// How standard output is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultForm {
    Json,
    /// As one text, without the newline at the end.
    Text,
    /// As a list of texts.
    Lines,
}

/// What an exit code means: `"done"`, `{ not_done = "invalid_input" }`, `{ maybe = "unavailable" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Done,
    NotDone(Category),
    Maybe(Category),
}
