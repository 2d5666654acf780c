//! MCP servers: a child process with `command`, or `url` for one that is reached over HTTP.

use super::{Common, span_maybe};
use rutter_core::time::Millis;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Server {
    pub command: Option<String>,
    pub args: Vec<String>,
    /// Added to the few variables every child gets.
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
    pub url: Option<String>,
    pub headers: BTreeMap<String, String>,
    #[serde(deserialize_with = "span_maybe")]
    pub start_timeout: Option<Millis>,
    pub disabled: bool,
    #[serde(flatten)]
    pub common: Common,
}
