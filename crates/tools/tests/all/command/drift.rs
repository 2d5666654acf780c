//! A replaced program is not the accepted one.

use super::fixture::{CommandFixture, call, done, not_done};
use rutter_core::tool::FailureCategory;
use rutter_tools::connector::{Connector, ConnectorState};
use serde_json::json;

#[tokio::test]
async fn a_changed_program_changes_the_definition_and_is_not_started() {
    let fixture = CommandFixture::new();
    let server = fixture.shell("echo first; echo x >> effects", "");
    let before = server.list().await.unwrap();
    assert_eq!(before, server.list().await.unwrap());
    assert_eq!(done(call(&server, json!({})).await), "first");
    let changes = server.changes();

    fixture.script("go.sh", "#!/bin/sh\necho other; echo x >> effects\n");
    let (category, message) = not_done(call(&server, json!({})).await);
    assert_eq!(category, FailureCategory::Conflict, "{message}");
    assert!(changes.has_changed().unwrap());
    assert_eq!(std::fs::read_to_string(fixture.cwd().join("effects")).unwrap(), "x\n");

    let after = server.list().await.unwrap();
    assert_ne!(before, after);
    assert_eq!(done(call(&server, json!({})).await), "other");
}

#[tokio::test]
async fn a_script_that_an_interpreter_is_given_counts_too() {
    let fixture = CommandFixture::new();
    let script = fixture.script("script", "print(1)");
    let server =
        fixture.server(&format!("[tools.go]\nargv = ['/usr/bin/python3', '{}']\ndescription = 'x'", script.display()));
    let before = server.list().await.unwrap();
    assert_eq!(done(call(&server, json!({})).await), 1);
    fixture.script("script", "print(2)");
    assert_eq!(not_done(call(&server, json!({})).await).0, FailureCategory::Conflict);
    assert_ne!(before, server.list().await.unwrap());
}

#[tokio::test]
async fn a_file_the_program_works_on_may_change() {
    let fixture = CommandFixture::new();
    let script = fixture.script("script", "print(open(__import__('sys').argv[1]).read())");
    let data = fixture.script("data", "1");
    let server = fixture.server(&format!(
        "[tools.go]\nargv = ['/usr/bin/python3', '-B', '{}', '{}']\ndescription = 'x'",
        script.display(),
        data.display()
    ));
    let before = server.list().await.unwrap();
    assert_eq!(done(call(&server, json!({})).await), 1);
    fixture.script("data", "2");
    assert_eq!(done(call(&server, json!({})).await), 2);
    assert_eq!(before, server.list().await.unwrap());
}

#[tokio::test]
async fn a_touched_program_with_the_same_bytes_is_the_same() {
    let fixture = CommandFixture::new();
    let server = fixture.shell("echo same", "");
    let before = server.list().await.unwrap();
    fixture.script("go.sh", "#!/bin/sh\necho same\n");
    assert_eq!(done(call(&server, json!({})).await), "same");
    assert_eq!(before, server.list().await.unwrap());
}

#[tokio::test]
async fn a_program_that_is_gone_is_not_offered() {
    let fixture = CommandFixture::new();
    let server = fixture.shell("echo here", "");
    assert_eq!(server.state(), ConnectorState::Ready);
    std::fs::remove_file(fixture.folder.path().join("go.sh")).unwrap();
    assert_eq!(not_done(call(&server, json!({})).await).0, FailureCategory::Unavailable);
    assert_eq!(server.list().await.unwrap_err().category, FailureCategory::Unavailable);
    assert!(matches!(server.state(), ConnectorState::Down { .. }));
}

#[tokio::test]
async fn definitions_say_how_the_program_is_confined() {
    let fixture = CommandFixture::new();
    let served = fixture.shell("echo", "safety = 'read_only'").list().await.unwrap();
    let annotations = &served[0].definition["annotations"];
    assert_eq!(annotations["sandbox"], "files, TCP");
    assert_eq!(annotations["readOnlyHint"], true);
    assert_eq!(annotations["sha256"].as_object().unwrap().len(), 1);
}
