//! Schemathesis asks everything the document allows, and much that it does not: no answer may be one the document does
//! not name, and none a failure of the server.

use crate::harbour::Harbour;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Enough to come by every operation several times, and little enough for every day.
const SECONDS: &str = "30";

/// What it is to look at in each answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,unsupported_method,ignored_auth";

fn program() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/schemathesis/bin/schemathesis");
    program.is_file().then_some(program)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_one_the_document_names() {
    let Some(program) = program() else {
        eprintln!("SKIPPED: schemathesis is not there; scripts/install-schemathesis installs it");
        return;
    };
    let harbour = Harbour::new().await;
    let folder = tempfile::tempdir().unwrap();
    let document = format!("{}/api/v1/openapi.json", harbour.base);
    let mut command = Command::new(program);
    command
        // One at a time: its own parser does not stand two threads.
        .args(["run", &document, "--no-color", "--seed", "7", "--max-time", SECONDS])
        .args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--request-timeout", "20"])
        .args([
            "--generation-database",
            "none",
            "--warnings",
            "off",
            "--max-examples",
            "15",
            "--continue-on-failure",
        ])
        // They never end, which it would wait for.
        .args(["--exclude-operation-id", "streamEvents", "--exclude-operation-id", "streamExecutionEvents"])
        .args(["--header", &format!("Authorization:Bearer {}", harbour.operators_secret())])
        .current_dir(folder.path());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    println!("{told}");
}
