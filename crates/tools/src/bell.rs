//! Commands for alerts: programs the operator named, started under limits, with the alert on standard input.

use crate::child::{Children, Limits, Reach, Sandbox, Start};
use crate::command::run::{Bounds, Cut, Ran, run};
use crate::command::{basic_environment, last_words, sandbox};
use crate::config::{AlertCommand, Alerts};
use rutter_core::port::bell::Bell;
use rutter_core::port::tools::Reply;
use rutter_core::time::Millis;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const TIMEOUT: Millis = Millis::seconds(30);
const PROCESSES_MAX: u64 = 64;

pub struct Bells {
    commands: BTreeMap<String, AlertCommand>,
    children: Arc<Children>,
    /// Where programs start.
    cwd: PathBuf,
    sandbox: Sandbox,
}

impl Bells {
    pub fn new(alerts: &Alerts, children: Arc<Children>, folder: &Path) -> io::Result<Bells> {
        let refused = |message: String| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        for (name, command) in &alerts.commands {
            if !command.program.is_absolute() {
                return refused(format!("alerts.commands.{name}: `program` must be a whole path"));
            }
            if name.is_empty() || name.chars().any(|c| c.is_control() || c.is_whitespace()) {
                return refused(format!("alerts.commands: {name:?} is no name; use letters and digits"));
            }
        }
        if !alerts.commands.is_empty() {
            std::fs::create_dir_all(folder)?;
        }
        let (commands, cwd) = (alerts.commands.clone(), folder.to_owned());
        Ok(Bells { commands, children, cwd, sandbox: sandbox() })
    }

    async fn start(&self, name: &str, command: &AlertCommand, input: Vec<u8>) -> Result<(), String> {
        let reach = Reach { read: Vec::new(), write: vec![self.cwd.clone()], network: command.network };
        let start = Start {
            program: command.program.clone(),
            arguments: command.arguments.iter().map(Into::into).collect(),
            environment: basic_environment(&self.cwd),
            cwd: self.cwd.clone(),
            about: format!("alerts.commands.{name}"),
            limits: Limits {
                memory_mib: Some(512),
                cpu_seconds: Some(60),
                processes: Some(PROCESSES_MAX),
                files: Some(256),
            },
            reach: (!matches!(self.sandbox, Sandbox::None { .. })).then_some(reach),
        };
        let timeout = Duration::from_millis(command.timeout.unwrap_or(TIMEOUT).0);
        let bounds =
            Bounds { timeout, grace: Duration::from_secs(2), output_kib: 64, processes: PROCESSES_MAX };
        match run(&self.children, start, &bounds, input, std::future::pending()).await {
            Ran::Never(why) => Err(why),
            Ran::Ended { ended, .. } if ended.0.is_some_and(|status| status.success()) => Ok(()),
            Ran::Ended { cut: Some(Cut::Timeout), .. } => Err("the program took too long".to_owned()),
            Ran::Ended { ended, stderr, .. } => Err(last_words(ended, &stderr)),
        }
    }
}

impl Bell for Bells {
    fn names(&self) -> Vec<String> {
        self.commands.keys().cloned().collect()
    }

    fn ring(&self, name: &str, input: Vec<u8>) -> Reply<'_, Result<(), String>> {
        let name = name.to_owned();
        Box::pin(async move {
            match self.commands.get(&name) {
                Some(command) => self.start(&name, command, input).await,
                None => Err(format!("there is no command {name:?} under [alerts.commands]")),
            }
        })
    }
}

impl std::fmt::Debug for Bells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bells").field("commands", &self.commands).finish_non_exhaustive()
    }
}
