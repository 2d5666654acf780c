//! `rutter policy check`, and the operator's policy in plan checks and previews.

use crate::fixture::RUTTER;
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Output};
use tempfile::TempDir;

const SETTINGS: &str = r#"
[[policy]]
name = "large payments"
tools = ["payments.*"]
when = "parameters.amount > 100"
approval = { by = ["ada", "grace"], expires = "4h" }

[[policy]]
name = "no deletions"
tools = ["*.delete_*"]
deny = "deleting is done by hand"

[[policy]]
servers = ["mail"]
principals = ["agent:*"]
limit = { calls = 20, per = "1h" }
"#;

const PLAN: &str = "
name: order
goal: charge and tidy up
inputs: { amount: { type: number } }
steps:
  - { id: charge, tool: payments.charge, parameters: { amount: '{{ inputs.amount }}' } }
  - { id: fee, tool: payments.charge, parameters: { amount: 500 } }
  - { id: small, tool: payments.charge, parameters: { amount: 5 } }
  - { id: tidy, tool: files.delete_all, parameters: {} }
";

/// A directory with settings and a plan.
struct PolicyFixture(TempDir);

impl PolicyFixture {
    fn new() -> PolicyFixture {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("rutter.toml"), SETTINGS).unwrap();
        fs::write(directory.path().join("plan.yaml"), PLAN).unwrap();
        PolicyFixture(directory)
    }

    fn output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(RUTTER);
        command.args(arguments).current_dir(self.0.path()).env_clear().env("USER", "ada");
        command.env("LC_ALL", "C.UTF-8").output().unwrap()
    }

    /// What is printed to stdout by a command that succeeds.
    fn said(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.said(&[arguments, &["--json"]].concat())).unwrap()
    }
}

#[test]
fn every_rule_is_printed_as_it_is_understood() {
    let fixture = PolicyFixture::new();
    let words = "\
RULE            CALLS                                              EFFECT
large payments  tools payments.*; when parameters.amount > 100     needs the approval of ada or grace, within 4h
no deletions    tools *.delete_*                                   forbidden: deleting is done by hand
policy[3]       servers mail; principals agent:*                   at most 20 calls per 1h
ok: rutter.toml, 3 rules
";
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeezed(&fixture.said(&["policy", "check"])), squeezed(words));
    assert_eq!(squeezed(&fixture.said(&["policy", "check", "rutter.toml"])), squeezed(words));
    let rules = &fixture.json(&["policy", "check"])["rules"];
    assert_eq!(rules[1]["rule"], "no deletions");
    assert_eq!((&rules[1]["kind"], &rules[1]["calls"]), (&json!("deny"), &json!("tools *.delete_*")));
}

#[test]
fn a_bad_rule_is_refused_with_its_name_and_its_line() {
    let fixture = PolicyFixture::new();
    let bad = format!("{SETTINGS}\n[[policy]]\nname = \"both\"\ndeny = \"no\"\napproval = {{}}\n");
    fs::write(fixture.0.path().join("bad.toml"), bad).unwrap();
    let output = fixture.output(&["policy", "check", "bad.toml"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("bad.toml, line 18: policy: both: a rule has only one of"), "{stderr}");
}

#[test]
fn a_call_is_explained_rule_by_rule_with_a_verdict() {
    let fixture = PolicyFixture::new();
    let call = ["policy", "check", "--call", "payments.charge", "--parameters", r#"{"amount": 500}"#];
    assert_eq!(
        fixture.said(&call),
        "\
a call of payments.charge (once) by person ada, tenant default
  \"large payments\" applies: `parameters.amount > 100` is true
  \"no deletions\" does not match: `tools` does not name this call
  \"policy[3]\" does not match: `servers` does not name this call
allowed, but needs the approval of ada or grace, within 4h (\"large payments\")
"
    );
    let small = ["policy", "check", "--call", "payments.charge", "--parameters", r#"{"amount": 5}"#];
    assert_eq!(fixture.json(&small)["verdict"], "allowed: no rule applies");
    let delete = fixture.json(&["policy", "check", "--call", "files.delete_all"]);
    assert_eq!(delete["verdict"], "forbidden by \"no deletions\": deleting is done by hand");
    let mail = ["policy", "check", "--call", "mail.send", "--principal", "agent:pilot", "--safety", "idempotent"];
    let mail = fixture.json(&mail);
    assert_eq!(mail["rules"][2]["applies"], true);
    assert_eq!(mail["call"]["principal"], json!({ "kind": "agent", "name": "pilot" }));
    assert_eq!(fixture.output(&["policy", "check", "--parameters", "{}"]).status.code(), Some(2), "needs --call");
    assert_eq!(fixture.output(&["policy", "check", "plan.yaml", "--call", "a.b"]).status.code(), Some(2));
}

#[test]
fn a_call_is_judged_by_the_tools_own_safety_and_an_unknown_tool_is_named() {
    let fixture = PolicyFixture::new();
    let rule = "[[policy]]\nname = \"still\"\nsafety = [\"idempotent\"]\ndeny = \"no\"\n";
    fs::write(fixture.0.path().join("rutter.toml"), rule).unwrap();
    let stored = fixture.json(&["policy", "check", "--call", "memory.store"]);
    assert_eq!((&stored["call"]["is_known"], &stored["verdict"]), (&json!(true), &json!("forbidden by \"still\": no")));
    let tightened = fixture.json(&["policy", "check", "--call", "memory.store", "--safety", "once"]);
    assert_eq!(tightened["verdict"], "forbidden by \"still\": no");
    let output = fixture.output(&["policy", "check", "--call", "memory.shred"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("warning: unknown tool memory.shred: it is judged as once"), "{stderr}");
}

#[test]
fn rules_that_are_about_nobody_are_warned_of() {
    let fixture = PolicyFixture::new();
    let rules = "[[policy]]\nprincipals = [\"persn:ada\"]\ndeny = \"no\"\n
[[policy]]\nservers = [\"shop\", \"mem*\"]\napproval = { by = [\"agent:x\", \"ada\"] }\n";
    fs::write(fixture.0.path().join("rutter.toml"), rules).unwrap();
    let warnings = &fixture.json(&["policy", "check"])["warnings"];
    let expected = json!([
        "policy[1]: `principals` names \"persn:ada\", which is neither an `agent:` nor a `person:`",
        "policy[2]: `servers` names \"shop\", and no such server is configured",
        "policy[2]: `by` names \"agent:x\", but only people approve",
    ]);
    assert_eq!(warnings, &expected);
}

#[test]
fn a_plan_is_explained_step_by_step_and_what_is_unknown_may_match() {
    let fixture = PolicyFixture::new();
    let lines = "\
policy: step \"charge\", \"large payments\" may match, depends on parameters.amount: \
needs the approval of ada or grace, within 4h
policy: step \"fee\", \"large payments\": needs the approval of ada or grace, within 4h
warning: step \"tidy\" will be refused by the policy, \"no deletions\": forbidden: deleting is done by hand
";
    assert_eq!(fixture.said(&["policy", "check", "plan.yaml"]), format!("{lines}plan.yaml: rules for 3 of 4 steps\n"));
    let checked = fixture.said(&["plan", "check", "--no-tools", "plan.yaml"]);
    assert!(checked.contains(lines) && checked.contains("plan.yaml: ok"), "a forbidden step is no error: {checked}");
    let previewed = fixture.said(&["plan", "preview", "--no-tools", "plan.yaml"]);
    assert!(previewed.contains("What the operator's policy says:"), "{previewed}");
}

#[test]
fn checks_and_previews_list_the_same_rules_as_json() {
    let fixture = PolicyFixture::new();
    let explained = &fixture.json(&["policy", "check", "plan.yaml"])["policy"];
    assert_eq!(&fixture.json(&["plan", "check", "--no-tools", "plan.yaml"])["policy"], explained);
    assert_eq!(explained[0]["step"], "charge");
    let rule = &explained[0]["rules"][0];
    assert_eq!((&rule["certainty"], &rule["by"]), (&json!("possible"), &json!(["ada", "grace"])));
    assert_eq!((&rule["kind"], &rule["call"]), (&json!("approval"), &json!("do")));
    let preview = &fixture.json(&["plan", "preview", "--no-tools", "plan.yaml"])["preview"];
    let step = |name: &str| preview["steps"].as_array().unwrap().iter().find(|step| step["step"] == name).unwrap();
    assert_eq!(&step("charge")["policy"], &explained[0]["rules"]);
    assert_eq!(step("tidy")["policy"][0]["certainty"], "certain");
    assert_eq!(step("small")["policy"], Value::Null);
}

const TOUCH: &str = "
[commands.files.tools.touch]
description = 'Create a file'
argv = ['/usr/bin/touch', '{path}']
input = { type = 'object', properties = { path = { type = 'string' } }, required = ['path'] }
result = 'text'
safety = 'idempotent'
";

#[test]
fn a_direct_call_that_a_rule_is_about_is_not_made() {
    let fixture = PolicyFixture::new();
    let made = fixture.0.path().join("made");
    let parameters = json!({ "path": made }).to_string();
    let write = format!("{TOUCH}write = [{:?}]\n", fixture.0.path().display().to_string());
    let call = |rule: &str| {
        fs::write(fixture.0.path().join("rutter.toml"), format!("dir = 'data'\n{write}\n{rule}")).unwrap();
        fixture.output(&["tools", "call", "files.touch", &parameters, "--json"])
    };
    for (rule, code, words) in [
        ("[[policy]]\ntools = ['files.*']\ndeny = 'by hand'", "command.forbidden", "by hand"),
        ("[[policy]]\nsafety = ['idempotent']\ndeny = 'no'", "command.forbidden", "policy[1]"),
        ("[[policy]]\nprincipals = ['person:ada']\ndeny = 'no'", "command.forbidden", "policy[1]"),
        ("[[policy]]\nwhen = \"parameters.path != ''\"\ndeny = 'no'", "command.forbidden", "policy[1]"),
        ("[[policy]]\napproval = { by = ['grace'] }", "command.not_direct", "needs the approval of grace"),
        ("[[policy]]\nlimit = { calls = 9, per = '1h' }", "command.not_direct", "at most 9 calls"),
    ] {
        let output = call(rule);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &answer["error"]["code"]), (Some(2), &json!(code)), "{rule}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{rule}: {answer}");
        assert!(!made.exists(), "{rule}");
    }
    let output = call("[[policy]]\nprincipals = ['agent:*']\ndeny = 'no'");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(made.exists(), "no rule is about it");
}

#[test]
fn a_strict_check_refuses_what_the_policy_certainly_forbids() {
    let fixture = PolicyFixture::new();
    let plan = "name: tidy\ngoal: g\nsteps:\n  - { id: tidy, tool: files.delete_all, cancellable: irreversible }\n";
    fs::write(fixture.0.path().join("plan.yaml"), plan).unwrap();
    let code = |flags: &[&str]| {
        let arguments = [&["plan", "check", "plan.yaml", "--no-tools"], flags].concat();
        fixture.output(&arguments).status.code()
    };
    assert_eq!((code(&[]), code(&["--strict"])), (Some(0), Some(2)));
}
