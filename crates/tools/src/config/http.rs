//! HTTP APIs: each tool is one kind of request.

use super::Common;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Server {
    pub base: String,
    #[serde(flatten)]
    pub common: Common,
}
