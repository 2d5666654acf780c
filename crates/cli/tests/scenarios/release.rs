//! S5: a red build deletes the tag again; what has been announced stays announced, and is called that.

use crate::answer::steps;
use crate::stage::{Kind, Stage, example};
use serde_json::json;

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.server("git", Kind::Stdio, &["tag", "delete_tag"]);
    stage.server("ci", Kind::Http, &["build", "discard"]);
    stage.server("forge", Kind::Stdio, &["create_release", "find_release", "delete_release"]);
    stage.server("chat", Kind::Http, &["announce"]);
    stage.server("mail", Kind::Command, &["send"]);
    stage.tool("git.tag", json!({ "gives": { "tag": "v1.2.3" } }));
    stage
}

const RUN: [&str; 5] = ["--json", "--input", "version=v1.2.3", "--input", "commit=\"0123456\""];

#[test]
fn a_red_build_deletes_the_tag_and_publishes_nothing() {
    let mut stage = stage();
    stage.faults("ci.build", json!([422])).open();
    let run = stage.rutter(&[&["run", example("release.yaml").to_str().unwrap()], &RUN[..]].concat());
    let ended = run.ended(1, "compensated");
    assert_eq!(stage.effects(), ["git.tag", "git.delete_tag"]);
    assert_eq!(stage.lines("effect", "git.delete_tag")[0]["arguments"]["tag"], "v1.2.3");
    assert_eq!(steps(&ended), ["tag=compensated", "build=failed", "publish=cancelled", "announce=cancelled"]);
    assert_eq!(ended["remains"], json!([]));
    stage.verify(&run.execution());
}

#[test]
fn an_announcement_that_is_out_remains_when_the_release_is_taken_back() {
    let mut stage = stage();
    stage.open();
    let run = stage.rutter(&[&["run", example("release.yaml").to_str().unwrap()], &RUN[..]].concat());
    run.ended(0, "completed");
    let there = ["git.tag", "ci.build", "forge.create_release", "chat.announce"];
    assert_eq!(stage.effects(), there);

    let execution = run.execution();
    let undone = stage.rutter(&["exec", "undo", &execution, "--reason", "the build is bad", "--json"]);
    let json = undone.json();
    assert_eq!(undone.code, Some(1), "{undone:?}");
    let back = ["forge.delete_release", "ci.discard", "git.delete_tag"];
    assert_eq!(stage.effects(), [&there[..], &back[..]].concat());
    let expected = ["tag=compensated", "build=compensated", "publish=compensated", "announce=completed"];
    assert_eq!(steps(&json), expected, "what was said is not called unsaid");
    assert_eq!(json["remains"], json!(["announce"]));
    let shown = stage.rutter(&["exec", "show", &execution]);
    assert!(shown.stdout.contains("not undone: announce"), "{shown:?}");
    stage.verify(&execution);
}

#[test]
fn a_chat_that_is_down_is_replaced_by_a_mail() {
    let mut stage = stage();
    stage.faults("chat.announce", json!([403])).open();
    let run = stage.rutter(&[&["run", example("release.yaml").to_str().unwrap()], &RUN[..]].concat());
    run.ended(0, "completed");
    assert_eq!(stage.effects(), ["git.tag", "ci.build", "forge.create_release", "mail.send"]);
    stage.verify(&run.execution());
}
