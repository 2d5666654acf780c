//! Commands: each tool is one program with fixed arguments and named slots.

use super::Common;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Server {
    #[serde(flatten)]
    pub common: Common,
}
