//! A server of commands in a directory of its own, with scripts as programs.

use crate::fixture::{self, SilentReporter, children};
pub use crate::fixture::{done, eventually, is_alive as lives};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, PartId, TenantId};
use rutter_core::journal::event::CallSide;
use rutter_core::port::tools::ToolCallId;
use rutter_core::time::Timestamp;
use rutter_core::tool::{CallOutcome, FailureCategory};
use rutter_tools::command::{CommandEnvironment, CommandServer};
use rutter_tools::connector::{Connector, ConnectorRequest};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub struct CommandFixture {
    pub folder: tempfile::TempDir,
    pub surroundings: CommandEnvironment,
}

impl CommandFixture {
    pub fn new() -> CommandFixture {
        let folder = tempfile::tempdir().unwrap();
        let surroundings = CommandEnvironment {
            children: Arc::new(children(folder.path())),
            folder: folder.path().join("commands"),
            environment: [("KNOWN", "given"), ("TOKEN", "secret of the parent")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        };
        CommandFixture { folder, surroundings }
    }

    /// Writes a program that can be started.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// The server `it`, from its table in the configuration.
    pub fn server(&self, toml: &str) -> CommandServer {
        self.try_server(toml).unwrap()
    }

    pub fn try_server(&self, toml: &str) -> Result<CommandServer, String> {
        let server = toml_edit::de::from_str(toml).map_err(|error| error.to_string())?;
        CommandServer::new("it", &server, self.surroundings.clone()).map_err(|error| error.to_string())
    }

    /// A server with one tool `go`: a shell script, and what else its table says.
    pub fn shell(&self, script: &str, more: &str) -> CommandServer {
        let path = self.script("go.sh", &format!("#!/bin/sh\n{script}\n"));
        self.server(&format!(
            "grace = '300ms'\n[tools.go]\nargv = ['{}']\ndescription = 'x'\nresult = 'text'\n{more}",
            path.display()
        ))
    }

    /// The working directory of the server's programs.
    pub fn cwd(&self) -> PathBuf {
        self.folder.path().join("commands/it")
    }
}

pub fn request(parameters: Value) -> ConnectorRequest {
    let identity = ExecutionIdentity { tenant: TenantId::new("tenant"), execution: ExecutionId::new("exec_1") };
    let part = PartId::parse("step").unwrap();
    ConnectorRequest {
        id: ToolCallId { identity, part, side: CallSide::Do, attempt: 1 },
        tool: "go".to_owned(),
        parameters: Arc::new(parameters),
        key: "key-1".to_owned(),
        timeout: Duration::from_secs(20),
        now: Timestamp(0),
        cancel: CancellationToken::new(),
        connection: None,
        declares_output: false,
        ticket: None,
        continuation: None,
        reporter: Arc::new(SilentReporter),
    }
}

pub async fn call(server: &CommandServer, parameters: Value) -> CallOutcome {
    server.call(request(parameters)).await
}

pub fn not_done(outcome: CallOutcome) -> (FailureCategory, String) {
    let failure = fixture::not_done(outcome);
    (failure.category, failure.message)
}

pub fn maybe(outcome: CallOutcome) -> (FailureCategory, String) {
    let failure = fixture::maybe(outcome);
    (failure.category, failure.message)
}
