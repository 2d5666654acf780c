//! The official Inspector finds no fault in the tools, over every transport and in both eras.
#![cfg(target_os = "linux")]

use crate::fixture::RUTTER;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

const ERAS: [&str; 2] = ["legacy", "modern"];
const ALL_TOOLSETS: &str = "default,journal,admin";

#[test]
fn tools_over_pipes_are_fine() {
    let Some(inspector) = Inspector::new() else { return };
    for era in ERAS {
        let dir = inspector.home.path().join("embedded");
        let dir = dir.to_str().unwrap();
        let tools = inspector.list(era, &[RUTTER, "mcp", "--embedded", "--toolset", ALL_TOOLSETS, "--dir", dir]);
        assert!(tools > 15, "all toolsets have only {tools} tools");
    }
}

#[test]
fn tools_through_the_server_that_a_client_starts_are_fine() {
    let Some(inspector) = Inspector::new() else { return };
    let dir = inspector.home.path().join("started");
    let dir = dir.to_str().unwrap();
    let listed = ERAS.map(|era| inspector.list(era, &[RUTTER, "mcp", "--toolset", ALL_TOOLSETS, "--dir", dir]));
    let stopped = Command::new(RUTTER).args(["stop", "--dir", dir]).output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
    assert_eq!(listed[0], listed[1]);
}

#[test]
fn tools_over_http_are_fine() {
    let Some(inspector) = Inspector::new() else { return };
    let dir = inspector.home.path().join("served");
    let mut command = Command::new(RUTTER);
    command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--dir"]).arg(&dir);
    let mut server = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    let url = format!("{}?toolset={ALL_TOOLSETS}", answer["mcp"].as_str().unwrap());
    let token = fs::read_to_string(dir.join("operator.token")).unwrap();
    let header = format!("Authorization: Bearer {}", token.trim());
    let listed = ERAS.map(|era| inspector.list(era, &[&url, "--transport", "http", "--header", &header]));
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(listed[0], listed[1]);
}

struct Inspector {
    node_modules: &'static Path,
    /// The home directory of the Inspector's catalog and the servers' databases.
    home: TempDir,
}

impl Inspector {
    /// `None` if it cannot be installed.
    fn new() -> Option<Inspector> {
        Some(Inspector { node_modules: installed()?, home: tempfile::tempdir().unwrap() })
    }

    /// The number of tools, which must have no issues.
    fn list(&self, era: &str, target: &[&str]) -> usize {
        let mut command = Command::new(self.node_modules.join("node/bin/node"));
        command.arg(self.node_modules.join(".bin/mcp-inspector"));
        command.arg("--cli");
        let options = ["-q", "--format", "json", "--protocol-era", era, "--method", "tools/list", "--strict"];
        match target {
            [url, ..] if url.starts_with("http") => command.args(target).args(options),
            program => command.args(options).arg("--").args(program),
        };
        let output = command.env("HOME", self.home.path()).stdin(Stdio::null()).output().unwrap();
        let found = String::from_utf8_lossy(&output.stderr);
        let mut issues = found.lines().filter(|line| line.contains("Issue:"));
        assert!(output.status.success() && issues.next().is_none(), "{era}, {target:?}:\n{found}");
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        listed["result"]["tools"].as_array().unwrap().len()
    }
}

/// The directory of the packages; they are installed if they are missing.
fn installed() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let output = Command::new(root.join("scripts/install-conformance")).output().unwrap();
        if !output.status.success() {
            println!("skipped: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(root.join("target/conformance/node_modules"))
    });
    folder.as_deref()
}
