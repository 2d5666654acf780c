//! The examples in docs/http-api.md work.

use crate::api::harbour::Harbour;
use rutter_app::auth::AccessScope;
use std::fs;
use std::path::Path;
use std::process::Command;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_of_the_manual_works() {
    let harbour = Harbour::new().await;
    let secret = harbour.secret_of("me", &AccessScope::ALL).await;
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/http-api.md");
    let manual = fs::read_to_string(manual).unwrap();
    let blocks = manual.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let script: String = blocks.collect();
    assert!(script.lines().filter(|line| line.contains("$RUTTER_URL")).count() > 20);
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("bash");
    command
        .args(["-euo", "pipefail", "-x", "-c", &script])
        .env("RUTTER_KEY", secret)
        .env("RUTTER_URL", &harbour.base)
        .env("NO_PROXY", "127.0.0.1")
        .current_dir(folder.path());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}\n{errors}");
    for message in ["\"status\":\"completed\"", "\"is_clean\":true", "event: ", "day,opened,", "\"kind\":\"approval\""]
    {
        assert!(text.contains(message), "{message} is missing in\n{text}\n{errors}");
    }
}
