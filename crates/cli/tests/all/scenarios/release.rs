//! S5: a failed build deletes the tag again; an announcement cannot be undone, and is reported as remaining.

use crate::scenarios::answer::steps;
use crate::scenarios::fixture::{Kind, ScenarioFixture, example};
use serde_json::json;

fn fixture() -> ScenarioFixture {
    let mut fixture = ScenarioFixture::new();
    fixture.server("git", Kind::Stdio, &["tag", "delete_tag"]);
    fixture.server("ci", Kind::Http, &["build", "discard"]);
    fixture.server("forge", Kind::Stdio, &["create_release", "find_release", "delete_release"]);
    fixture.server("chat", Kind::Http, &["announce"]);
    fixture.server("mail", Kind::Command, &["send"]);
    fixture.tool("git.tag", json!({ "gives": { "tag": "v1.2.3" } }));
    fixture
}

const RUN: [&str; 5] = ["--json", "--input", "version=v1.2.3", "--input", "commit=\"0123456\""];

#[test]
fn a_failed_build_deletes_the_tag_and_publishes_nothing() {
    let mut fixture = fixture();
    fixture.faults("ci.build", json!([422])).open();
    let run = fixture.rutter(&[&["run", example("release.yaml").to_str().unwrap()], &RUN[..]].concat());
    let ended = run.ended(1, "compensated");
    assert_eq!(fixture.effects(), ["git.tag", "git.delete_tag"]);
    assert_eq!(fixture.lines("effect", "git.delete_tag")[0]["arguments"]["tag"], "v1.2.3");
    assert_eq!(steps(&ended), ["tag=compensated", "build=failed", "publish=cancelled", "announce=cancelled"]);
    assert_eq!(ended["remains"], json!([]));
    fixture.verify(&run.execution());
}

#[test]
fn an_announcement_remains_when_the_release_is_undone() {
    let mut fixture = fixture();
    fixture.open();
    let run = fixture.rutter(&[&["run", example("release.yaml").to_str().unwrap()], &RUN[..]].concat());
    run.ended(0, "completed");
    let there = ["git.tag", "ci.build", "forge.create_release", "chat.announce"];
    assert_eq!(fixture.effects(), there);

    let execution = run.execution();
    let undone = fixture.rutter(&["exec", "undo", &execution, "--reason", "the build is bad", "--json"]);
    let json = undone.json();
    assert_eq!(undone.code, Some(1), "{undone:?}");
    let back = ["forge.delete_release", "ci.discard", "git.delete_tag"];
    assert_eq!(fixture.effects(), [&there[..], &back[..]].concat());
    let expected = ["tag=compensated", "build=compensated", "publish=compensated", "announce=completed"];
    assert_eq!(steps(&json), expected, "the announcement is not reported as undone");
    assert_eq!(json["remains"], json!(["announce"]));
    let answer = fixture.rutter(&["exec", "show", &execution]);
    assert!(answer.stdout.contains("not undone: announce"), "{answer:?}");
    fixture.verify(&execution);
}

#[test]
fn a_chat_that_is_down_is_replaced_by_a_mail() {
    let mut fixture = fixture();
    fixture.faults("chat.announce", json!([403])).open();
    let run = fixture.rutter(&[&["run", example("release.yaml").to_str().unwrap()], &RUN[..]].concat());
    run.ended(0, "completed");
    assert_eq!(fixture.effects(), ["git.tag", "ci.build", "forge.create_release", "mail.send"]);
    fixture.verify(&run.execution());
}
