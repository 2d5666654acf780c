//! The locations of the clients used in these tests.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages of the clients; installed if they are missing.
pub fn clients() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let installed = Command::new(root.join("scripts/install-mcp-clients")).output().unwrap();
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    root.join("target/mcp-clients")
}

/// Our program that uses one of them.
pub fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/clients").join(name).canonicalize().unwrap()
}

/// The installed Node, if the system's is too old.
pub fn node() -> PathBuf {
    let own = clients().join("node/node_modules/node/bin/node");
    if own.exists() { own } else { "node".into() }
}
