//! A server of commands in a directory of its own, with scripts as programs.

use rutter_core::execution::Identity;
use rutter_core::id::{ExecutionId, PartId, TenantId};
use rutter_core::journal::event::Side;
use rutter_core::port::tools::{CallId, Elicitation, Progress, Reply, Reporter};
use rutter_core::time::Timestamp;
use rutter_core::tool::{Category, Outcome};
use rutter_tools::child::{Children, Launcher, Roster};
use rutter_tools::command::{CommandServer, Surroundings};
use rutter_tools::connector::{Connector, Request};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

pub struct Bench {
    pub folder: tempfile::TempDir,
    pub surroundings: Surroundings,
}

impl Bench {
    pub fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let own = std::env::current_exe().unwrap();
        let program = own.ancestors().nth(2).unwrap().join("examples/launch");
        assert!(program.exists(), "build the launcher first: cargo build -p rutter-tools --example launch");
        let (roster, _) = Roster::open(&folder.path().join("roster")).unwrap();
        let children = Children::new(Launcher { program, arguments: Vec::new() }, Arc::new(roster));
        let surroundings = Surroundings {
            children: Arc::new(children),
            folder: folder.path().join("commands"),
            environment: [("KNOWN", "given"), ("TOKEN", "secret of the parent")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        };
        Bench { folder, surroundings }
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

    /// Where the server's programs start.
    pub fn cwd(&self) -> PathBuf {
        self.folder.path().join("commands/it")
    }
}

pub fn request(parameters: Value) -> Request {
    let identity = Identity { tenant: TenantId::new("tenant"), execution: ExecutionId::new("exec_1") };
    let part = PartId::parse("step").unwrap();
    Request {
        id: CallId { identity, part, side: Side::Do, attempt: 1 },
        tool: "go".to_owned(),
        parameters: Arc::new(parameters),
        key: "key-1".to_owned(),
        timeout: Duration::from_secs(20),
        now: Timestamp(0),
        cancel: CancellationToken::new(),
        ticket: None,
        reporter: Arc::new(Silent),
    }
}

pub async fn call(server: &CommandServer, parameters: Value) -> Outcome {
    server.call(request(parameters)).await
}

/// What a call gave back that was done.
pub fn done(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Done { result, .. } => (*result).clone(),
        other => panic!("{other:?}"),
    }
}

pub fn not_done(outcome: Outcome) -> (Category, String) {
    match outcome {
        Outcome::NotDone(failure) => (failure.category, failure.message),
        other => panic!("{other:?}"),
    }
}

pub fn maybe(outcome: Outcome) -> (Category, String) {
    match outcome {
        Outcome::Maybe(failure) => (failure.category, failure.message),
        other => panic!("{other:?}"),
    }
}

/// Whether a process is there and has not ended.
pub fn lives(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit_once(") ").unwrap().1.starts_with('Z')
}

pub async fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_true() {
        assert!(Instant::now() < until, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

struct Silent;

impl Reporter for Silent {
    fn accepted(&self, _: String) -> Reply<'_, ()> {
        Box::pin(async {})
    }

    fn ask(&self, _: Elicitation) -> Reply<'_, Option<Value>> {
        Box::pin(async { None })
    }

    fn progress(&self, _: Progress) {}
}
