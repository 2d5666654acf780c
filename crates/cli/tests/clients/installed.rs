//! Where the programs are that come to Rutter in these tests.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages of others; installed if they are not.
pub fn clients() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let installed = Command::new(root.join("scripts/install-mcp-clients")).output().unwrap();
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    root.join("target/mcp-clients")
}

/// A program of ours that uses one of them.
pub fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/clients").join(name).canonicalize().unwrap()
}

/// The Node that was installed where the system's is too old.
pub fn node() -> PathBuf {
    let own = clients().join("node/node_modules/node/bin/node");
    if own.exists() { own } else { "node".into() }
}
