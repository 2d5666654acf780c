//! Commands for alerts: programs the operator named, started under limits, with the alert on standard input.

use crate::child::{ChildSpawner, ProgramStart, ResourceLimits, SandboxPermissions, SandboxSupport};
use crate::command::run::{CutReason, ProgramBounds, ProgramRun, run};
use crate::command::{basic_environment, last_words, sandbox};
use crate::config::{AlertCommandConfig, AlertSettings};
use rutter_core::port::alert_commands::AlertCommands;
use rutter_core::port::tools::PortFuture;
use rutter_core::time::Millis;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const TIMEOUT: Millis = Millis::seconds(30);
const PROCESSES_MAX: u64 = 64;

pub struct AlertCommandRunner {
    commands: BTreeMap<String, AlertCommandConfig>,
    children: Arc<ChildSpawner>,
    /// The working directory of the programs.
    cwd: PathBuf,
    sandbox: SandboxSupport,
}

impl AlertCommandRunner {
    pub fn new(alerts: &AlertSettings, children: Arc<ChildSpawner>, folder: &Path) -> io::Result<AlertCommandRunner> {
        let refused = |message: String| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        for (name, command) in &alerts.commands {
            if !command.program.is_absolute() {
                return refused(format!("alerts.commands.{name}: `program` must be an absolute path"));
            }
            if name.is_empty() || name.chars().any(|c| c.is_control() || c.is_whitespace()) {
                return refused(format!("alerts.commands: invalid name {name:?}; use letters and digits"));
            }
        }
        // The launcher changes to it before it limits the program to it, so a relative path would mean another directory.
        let cwd = std::path::absolute(folder)?;
        if !alerts.commands.is_empty() {
            std::fs::create_dir_all(&cwd)?;
        }
        let commands = alerts.commands.clone();
        Ok(AlertCommandRunner { commands, children, cwd, sandbox: sandbox() })
    }

    async fn start(&self, name: &str, command: &AlertCommandConfig, input: Vec<u8>) -> Result<(), String> {
        let reach = SandboxPermissions { read: Vec::new(), write: vec![self.cwd.clone()], network: command.network };
        let start = ProgramStart {
            program: command.program.clone(),
            arguments: command.arguments.iter().map(Into::into).collect(),
            environment: basic_environment(&self.cwd),
            cwd: self.cwd.clone(),
            about: format!("alerts.commands.{name}"),
            limits: ResourceLimits {
                memory_mib: Some(512),
                cpu_seconds: Some(60),
                processes: Some(PROCESSES_MAX),
                files: Some(256),
            },
            reach: (!matches!(self.sandbox, SandboxSupport::None { .. })).then_some(reach),
        };
        let timeout = Duration::from_millis(command.timeout.unwrap_or(TIMEOUT).0);
        let bounds = ProgramBounds { timeout, grace: Duration::from_secs(2), output_kib: 64, processes: PROCESSES_MAX };
        match run(&self.children, start, &bounds, input, std::future::pending()).await {
            ProgramRun::Never(why) => Err(why),
            ProgramRun::Ended { ended, .. } if ended.0.is_some_and(|status| status.success()) => Ok(()),
            ProgramRun::Ended { cut: Some(CutReason::Timeout), .. } => Err("the program took too long".to_owned()),
            ProgramRun::Ended { ended, stderr, .. } => Err(last_words(ended, &stderr)),
        }
    }
}

impl AlertCommands for AlertCommandRunner {
    fn names(&self) -> Vec<String> {
        self.commands.keys().cloned().collect()
    }

    fn run(&self, name: &str, input: Vec<u8>) -> PortFuture<'_, Result<(), String>> {
        let name = name.to_owned();
        Box::pin(async move {
            match self.commands.get(&name) {
                Some(command) => self.start(&name, command, input).await,
                None => Err(format!("there is no command {name:?} under [alerts.commands]")),
            }
        })
    }
}

impl std::fmt::Debug for AlertCommandRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AlertCommandRunner").field("commands", &self.commands).finish_non_exhaustive()
    }
}
