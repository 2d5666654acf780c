//! `rutter plan export` and `import`, with a server and without one.

use crate::server::fixture::{ServerFixture, output_text};
use serde_json::Value;
use std::fs;

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
