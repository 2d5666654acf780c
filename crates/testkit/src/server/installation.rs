//! The base of every server: a database in a folder, configured tools, an engine.

use rutter_app::runtime::{Runtime, RuntimeOptions, ToolSource};
use rutter_engine::{Engine, SystemClock};
use rutter_store::SqliteStore;
use rutter_tools::assemble::AssembledTools;
use rutter_tools::child::LauncherProgram;
use rutter_tools::guard::SystemResolver;
use rutter_tools::http_sender::GuardedHttpSender;
use std::path::Path;
use std::sync::Arc;

/// An installation in a folder with the tools of some lines of rutter.toml; webhooks may be sent to loopback.
pub fn options(folder: &Path, config: &str) -> RuntimeOptions {
    RuntimeOptions {
        tools: ToolSource::Config(toml_edit::de::from_str(config).unwrap()),
        launcher: LauncherProgram { program: "/bin/false".into(), arguments: Vec::new() },
        environment: std::env::vars().collect(),
        webhooks_allow: vec!["127.0.0.1".to_owned()],
        reserve_bytes: Some(0),
        ..RuntimeOptions::new(folder)
    }
}

#[derive(Debug)]
pub struct Installation {
    pub clock: SystemClock,
    pub store: Arc<SqliteStore>,
    pub tooling: AssembledTools,
    pub engine: Engine,
    /// May send to loopback.
    pub post: Arc<GuardedHttpSender>,
}

impl Installation {
    /// With the tools of some lines of rutter.toml.
    pub async fn open(folder: &Path, config: &str) -> Installation {
        let runtime = Runtime::prepare(options(folder, config)).await.unwrap();
        let engine = runtime.engine().clone();
        let Runtime { clock, store, tools, .. } = runtime;
        let post = GuardedHttpSender::new(&["127.0.0.1".to_owned()], Arc::new(SystemResolver)).unwrap();
        Installation { clock, store, tooling: tools.unwrap(), engine, post: Arc::new(post) }
    }
}
