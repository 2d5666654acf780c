//! Saved plans on the command line, with a server and without one: saved, renamed, archived, deleted, exported, imported,
//! and run by name.

use crate::server::fixture::{ServerFixture, ended, output_text, until};
use serde_json::Value;
use std::fs;
use std::process::Stdio;

/// A plan that anybody can run.
const LOOK: &str = "name: look\nsteps:\n  - { id: look, tool: memory.recent }\n";

/// Runs a test without a server, and with one that owns the database.
pub fn without_and_with_a_server(test: impl Fn(&ServerFixture)) {
    for is_served in [false, true] {
        let fixture = ServerFixture::new();
        let server = is_served.then(|| fixture.command(&["serve", "--no-http"]).spawn().unwrap());
        until("the server listens", || !is_served || fixture.data.join("rutter.sock").exists());
        test(&fixture);
        assert_eq!(fixture.owner(), server.as_ref().map(|server| server.id()), "nothing else owns the database");
        if let Some(server) = server {
            fixture.rutter(&["stop"]);
            ended(server);
        }
    }
}

/// The refusal of a command: its code and message.
fn refusal(fixture: &ServerFixture, words: &[&str]) -> (String, String) {
    let output = fixture.rutter(&[words, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(2), "{words:?}: {}", output_text(&output));
    let error = lines(&output).remove(0)["error"].clone();
    (error["code"].as_str().unwrap().to_owned(), error["message"].as_str().unwrap().to_owned())
}

/// The names of the plans that a command lists.
fn listed(fixture: &ServerFixture, more: &[&str]) -> Vec<String> {
    let output = fixture.rutter(&[&["plan", "list", "--json"], more].concat());
    lines(&output).iter().map(|plan| plan["name"].as_str().unwrap().to_owned()).collect()
}

fn lines(output: &std::process::Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{}", output_text(output)))).collect()
}

fn results(output: &std::process::Output) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    lines(output).iter().map(|plan| (text(&plan["name"]), text(&plan["result"]))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, result)| ((*name).to_owned(), (*result).to_owned())).collect()
}

#[test]
fn every_plan_is_exported_and_imported_into_another_installation() {
    let (here, there) = (ServerFixture::new(), ServerFixture::new());
    for file in ["plan.yaml", "asking.yaml"] {
        assert_eq!(here.rutter(&["plan", "save", file]).status.code(), Some(0));
    }
    let file = there.path("plans.json");
    let exported = here.rutter(&["plan", "export", "--all", "-o", file.to_str().unwrap()]);
    assert_eq!(exported.status.code(), Some(0), "{}", output_text(&exported));
    let envelope: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(envelope["format"], "rutter-plans/1");
    assert_eq!((&envelope["plans"][0]["name"], &envelope["plans"][1]["revision"]), (&"asking".into(), &1.into()));
    let import = || there.rutter(&["plan", "import", "plans.json", "--json"]);
    assert_eq!(results(&import()), pairs(&[("asking", "new"), ("slow", "new")]));
    assert_eq!(results(&import()), pairs(&[("asking", "unchanged"), ("slow", "unchanged")]));

    // Only what is wrong is refused, with its diagnostics; the rest is saved.
    let text = fs::read_to_string(&file).unwrap();
    let text = text.replace("gate.ask", "gate.nothing").replace("pass the gate", "pass the gate soon");
    fs::write(&file, text).unwrap();
    let partly = import();
    assert_eq!(results(&partly), pairs(&[("asking", "refused"), ("slow", "next_revision")]));
    assert_eq!(partly.status.code(), Some(2));
    let error = &lines(&partly)[0]["error"];
    assert_eq!(error["details"]["diagnostics"][0]["code"], "plan.unknown_tool", "{error}");
    let told = output_text(&there.rutter(&["plan", "import", "plans.json"]));
    assert!(told.contains("asking: refused") && told.contains("slow: unchanged, revision 2"), "{told}");
}

#[test]
fn one_plan_is_exported_as_its_document_and_imported_through_the_server() {
    let fixture = ServerFixture::new();
    fixture.rutter(&["plan", "save", "plan.yaml"]);
    let document = fixture.json(&["plan", "export", "slow"]);
    assert_eq!((&document["name"], &document["steps"][0]["id"]), (&"slow".into(), &"pass".into()));
    let mut changed = document.clone();
    changed["description"] = "changed".into();
    fs::write(fixture.path("changed.json"), changed.to_string()).unwrap();
    let server = fixture.command(&["serve"]).spawn().unwrap();
    crate::server::fixture::until("the server to own the database", || fixture.owner().is_some());
    let imported = fixture.rutter(&["plan", "import", "changed.json", "--json"]);
    assert_eq!(results(&imported), pairs(&[("slow", "next_revision")]), "{}", output_text(&imported));
    assert_eq!(fixture.json(&["plan", "export", "slow@1"]), document);
    assert_eq!(fixture.json(&["plan", "export", "slow"]), changed);
    let missing = fixture.rutter(&["plan", "export", "slow@9"]);
    assert_eq!(missing.status.code(), Some(2), "{}", output_text(&missing));
    let several = fixture.json(&["plan", "export", "slow", "slow@1"]);
    assert_eq!(several["plans"].as_array().map(Vec::len), Some(2));
    fixture.rutter(&["stop"]);
    crate::server::fixture::ended(server);
}

#[test]
fn a_saved_plan_that_is_called_like_a_file_is_found_if_there_is_none() {
    let fixture = ServerFixture::new();
    for name in ["a/b", "x.yaml"] {
        let plan = format!("name: {name}\nsteps:\n  - {{ id: look, tool: memory.recent }}\n");
        fs::write(fixture.path("saved.yml"), plan).unwrap();
        assert_eq!(fixture.rutter(&["plan", "save", "saved.yml"]).status.code(), Some(0));
        for words in [["run", name].as_slice(), &["plan", "optimize", name], &["plan", "check", name]] {
            let output = fixture.rutter(words);
            assert_eq!(output.status.code(), Some(0), "{words:?}: {}", output_text(&output));
        }
    }
    for words in
        [["run", "a/c"].as_slice(), &["plan", "optimize", "y.yaml"], &["plan", "check", "y.yaml"], &["run", "y"]]
    {
        let output = fixture.rutter(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", output_text(&output));
        assert!(output_text(&output).contains("neither a file nor a saved plan"), "{}", output_text(&output));
    }
}

#[test]
fn a_plan_is_renamed_archived_and_restored() {
    without_and_with_a_server(|fixture| {
        fs::write(fixture.path("look.yaml"), LOOK).unwrap();
        let saved = fixture.json(&["plan", "save", "look.yaml", "--json"]);
        assert_eq!((&saved["revision"], &saved["is_new"]), (&1.into(), &true.into()), "{saved}");
        let id = saved["plan_id"].as_str().unwrap();
        let renamed = fixture.json(&["plan", "rename", "look", "--to", "glance", "--json"]);
        assert_eq!((&renamed["plan_id"], &renamed["name"]), (&id.into(), &"glance".into()), "{renamed}");
        assert_eq!(fixture.json(&["plan", "show", "glance", "--json"])["revision"], 2);
        assert_eq!(listed(fixture, &[]), ["glance"]);

        for is_new in [true, false] {
            let archived = fixture.json(&["plan", "archive", "glance", "--reason", "not needed", "--json"]);
            assert_eq!((&archived["is_new"], &archived["ok"]), (&is_new.into(), &true.into()), "{archived}");
        }
        assert_eq!((listed(fixture, &[]), listed(fixture, &["--archived"])), (vec![], vec!["glance".to_owned()]));
        for plan in ["glance", "glance@2", id] {
            let (code, message) = refusal(fixture, &["run", plan]);
            assert_eq!((code.as_str(), message.as_str()), ("server.plan_archived", "plan \"glance\" is archived"));
        }
        let restored = fixture.json(&["plan", "restore", "glance", "--json"]);
        assert_eq!(restored["is_new"], true, "{restored}");
        assert_eq!(listed(fixture, &[]), ["glance"]);
        assert_eq!(fixture.json(&["run", "glance", "--json"])["status"], "completed");
    });
}

#[test]
fn a_plan_is_deleted_with_a_reason_once_nothing_uses_it() {
    without_and_with_a_server(|fixture| {
        fixture.rutter(&["plan", "save", "asking.yaml"]);
        assert_eq!(fixture.json(&["run", "asking", "--json"])["status"], "waiting");
        let delete = ["plan", "delete", "asking", "--reason", "it was a trial"];
        assert_eq!(refusal(fixture, &delete[..3]).0, "command.reason_missing");
        assert_eq!(refusal(fixture, &delete).0, "store.in_use");
        assert_eq!(listed(fixture, &[]), ["asking"]);
        fixture.rutter(&["exec", "kill", &fixture.execution(), "--reason", "no longer wanted"]);
        let deleted = fixture.json(&[&delete[..], &["--json"]].concat());
        assert_eq!((&deleted["is_new"], &deleted["executions_kept"]), (&true.into(), &1.into()), "{deleted}");
        assert!(listed(fixture, &[]).is_empty() && listed(fixture, &["--archived"]).is_empty());
        let (_, message) = refusal(fixture, &["run", "asking"]);
        assert_eq!(message, "there is neither a file nor a saved plan \"asking\"");
    });
}

#[test]
fn a_saved_plan_is_run_by_name_id_and_revision() {
    without_and_with_a_server(|fixture| {
        for text in [LOOK.to_owned(), format!("{LOOK}description: changed\n")] {
            fs::write(fixture.path("look.yaml"), text).unwrap();
            assert_eq!(fixture.rutter(&["plan", "save", "look.yaml"]).status.code(), Some(0));
        }
        let id = fixture.json(&["plan", "list", "--json"])["plan_id"].as_str().unwrap().to_owned();
        let of_id = format!("{id}@1");
        for (plan, revision) in [("look", 2), ("look@1", 1), ("look@2", 2), (&id, 2), (&of_id, 1)] {
            let ran = fixture.json(&["run", plan, "--json"]);
            let about = (&ran["status"], &ran["plan"]["id"], &ran["plan"]["revision"]);
            assert_eq!(about, (&"completed".into(), &id.as_str().into(), &revision.into()), "{plan}: {ran}");
        }
        for words in [["run", "look@9"].as_slice(), &["plan", "optimize", "look@9"]] {
            let (code, message) = refusal(fixture, words);
            let expected = ("store.not_found", "plan \"look\" has no revision 9; the newest is 2");
            assert_eq!((code.as_str(), message.as_str()), expected, "{words:?}");
        }
    });
}

#[test]
fn the_list_of_tools_is_a_catalogue_to_check_plans_against() {
    let fixture = ServerFixture::new();
    fs::write(fixture.path("other.yaml"), LOOK.replace("memory.recent", "memory.recnt")).unwrap();
    for (file, code, says) in [("plan.yaml", 0, "ok, 1 step"), ("other.yaml", 2, "plan.unknown_tool")] {
        let mut list = fixture.command(&["tools", "list", "--json"]).stderr(Stdio::null()).spawn().unwrap();
        let mut check = fixture.command(&["plan", "check", "--tools", "-", file]);
        let checked = ended(check.stdin(list.stdout.take().unwrap()).spawn().unwrap());
        ended(list);
        assert_eq!(checked.status.code(), Some(code), "{file}: {}", output_text(&checked));
        assert!(output_text(&checked).contains(says), "{file}: {}", output_text(&checked));
    }
}

#[test]
fn an_own_template_is_listed_and_becomes_a_plan() {
    let fixture = ServerFixture::new();
    let template = "description: Look once\nparameters:\n  type: object\n  required: [name]\n  properties:\n    \
                    name: { type: string, description: Its name }\n    tool: { type: string, default: memory.recent }\n\
                    plan:\n  name: \"${name}\"\n  steps:\n    - { id: look, tool: \"${tool}\" }\n";
    fs::create_dir(fixture.path("templates")).unwrap();
    fs::write(fixture.path("templates/once.yaml"), template).unwrap();
    let templates = lines(&fixture.rutter(&["plan", "templates", "--json"]));
    let own = templates.iter().find(|template| template["name"] == "once");
    assert_eq!(own.unwrap()["description"], "Look once", "{templates:?}");
    assert!(templates.len() > 1, "beside those that come with the program: {templates:?}");
    let text = output_text(&fixture.rutter(&["plan", "templates"]));
    assert!(text.contains("once: Look once") && text.contains("default \"memory.recent\""), "{text}");

    let make = ["plan", "new", "--template", "once"];
    let missing = output_text(&fixture.rutter(&make));
    assert!(missing.contains("name"), "{missing}");
    let made = fixture.json(&[&make[..], &["--input", "name=4711"]].concat());
    assert_eq!(made["name"], "4711", "{made}");
    let made = fixture.rutter(&[&make[..], &["--input", "name=mine", "--out", "mine.json"]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", output_text(&made));
    assert_eq!(fixture.json(&["run", "mine.json", "--json"])["status"], "completed");
}
