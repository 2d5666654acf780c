//! The official conformance suite, as published, against Rutter's MCP server and client.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

const OLDER: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

#[test]
fn the_listener_conforms_to_the_older_era() {
    let Some(mut suite) = suite("server", OLDER) else { return };
    let server = Server::start("--fixtures");
    let text = passed(suite.args(["--url", &server.url]));
    assert!(text.contains(" 0 failing"), "unscored checks must pass as well:\n{text}");
}

#[test]
fn the_listener_conforms_to_the_modern_era() {
    let Some(mut suite) = suite("server", MODERN) else { return };
    let server = Server::start("--fixtures");
    let text = passed(suite.args(["--url", &server.url]));
    assert!(text.contains(" 0 failing"), "unscored checks must pass as well:\n{text}");
}

#[test]
fn the_product_lacks_only_the_fixtures_in_the_older_era() {
    let Some(mut suite) = suite("server", OLDER) else { return };
    let server = Server::start("--product");
    passed(suite.args(["--url", &server.url]).arg("--expected-failures").arg(baseline(OLDER)));
}

#[test]
fn the_product_lacks_only_the_fixtures_in_the_modern_era() {
    let Some(mut suite) = suite("server", MODERN) else { return };
    let server = Server::start("--product");
    passed(suite.args(["--url", &server.url]).arg("--expected-failures").arg(baseline(MODERN)));
}

#[test]
fn the_connector_conforms_to_the_older_era() {
    let Some(mut suite) = suite("client", OLDER) else { return };
    passed(suite.args(["--command", &client()]));
}

#[test]
fn the_connector_conforms_to_the_modern_era() {
    let Some(mut suite) = suite("client", MODERN) else { return };
    passed(suite.args(["--command", &client()]));
}

/// The suite for one side and one revision; `None` if it cannot be installed.
fn suite(side: &str, revision: &str) -> Option<Command> {
    let folder = installed()?;
    let mut command = Command::new(folder.join("node/bin/node"));
    command.arg(folder.join("@modelcontextprotocol/conformance/dist/index.js"));
    command.args([side, "--requirements", revision]);
    // A machine that builds at the same time is slow.
    command.args(["--timeout", "120000"]);
    // Some scenarios make the client give up; the backtrace is of no interest.
    command.env("RUST_BACKTRACE", "0");
    Some(command)
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

/// The suite's output, which must report no failure.
#[track_caller]
fn passed(suite: &mut Command) -> String {
    let Output { status, stdout, stderr } = suite.output().unwrap();
    let text = String::from_utf8_lossy(&stdout);
    let summary = text.split_once("SUMMARY").map_or(&*text, |(_, summary)| summary);
    assert!(status.success(), "{status}\n{summary}\n{}", String::from_utf8_lossy(&stderr));
    summary.to_owned()
}

fn baseline(revision: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("baseline-{revision}.yml"))
}

/// Quoted, because the suite passes it to a shell.
fn client() -> String {
    format!("'{}'", env!("CARGO_BIN_EXE_conformance-client"))
}

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(what: &str) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_conformance-server"));
        let mut child = command.arg(what).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let json: Value = serde_json::from_str(&line).unwrap();
        Server { child, url: json["url"].as_str().unwrap().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        _ = self.child.wait();
    }
}
