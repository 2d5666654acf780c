//! Schemathesis sends everything the document allows, and much that it does not: every response must be documented, and
//! none may be a server error.

use crate::api::harbour::Harbour;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Enough to reach every operation several times, and short enough for every run.
const SECONDS: &str = "30";

/// The checks on each response.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,unsupported_method,ignored_auth";

fn program() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/schemathesis/bin/schemathesis");
    program.is_file().then_some(program)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_is_documented() {
    let Some(program) = program() else {
        eprintln!("SKIPPED: schemathesis is not there; scripts/install-schemathesis installs it");
        return;
    };
    let harbour = Harbour::new().await;
    let folder = tempfile::tempdir().unwrap();
    let document = format!("{}/api/v1/openapi.json", harbour.base);
    let mut command = Command::new(program);
    command
        // One worker: its parser is not thread-safe.
        .args(["run", &document, "--no-color", "--seed", "7", "--max-time", SECONDS])
        .args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--request-timeout", "20"])
        .args(["--generation-database", "none", "--warnings", "off", "--max-examples", "15", "--continue-on-failure"])
        // Streams never end, and it would wait for them.
        .args(["--exclude-operation-id", "streamEvents", "--exclude-operation-id", "streamExecutionEvents"])
        .args(["--header", &format!("Authorization:Bearer {}", harbour.operators_secret())])
        .current_dir(folder.path());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    println!("{text}");
}
