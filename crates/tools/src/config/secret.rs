//! Where a secret comes from. Its value is never in a plan, a journal or this file.

use serde::Deserialize;
use std::path::PathBuf;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum SecretSource {
    Env(String),
    File(PathBuf),
    /// What it prints, without the newline at the end.
    Command(Vec<String>),
}
