//! The first minutes: `init`, `doctor`, `config` and `man`, in an empty home directory.

use crate::fixture::{RUTTER, output_text};
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

struct Project {
    place: TempDir,
}

impl Project {
    fn new() -> Project {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("home")).unwrap();
        fs::create_dir_all(place.path().join("project")).unwrap();
        Project { place }
    }

    fn home(&self, name: &str) -> PathBuf {
        self.place.path().join("home").join(name)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().canonicalize().unwrap().join("project").join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(RUTTER);
        command.args(words).current_dir(self.path("")).env_clear().env("HOME", self.home(""));
        // Other users of the usual address on this machine must not matter.
        command.env("USER", "operator").env("LC_ALL", "C.UTF-8").env("RUTTER_LISTEN", "127.0.0.1:0");
        command.stdin(Stdio::null());
        command
    }

    fn rutter(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// The JSON object that a command prints, and its exit code.
    fn json(&self, words: &[&str]) -> (Value, Option<i32>) {
        let output = self.rutter(words);
        let answer = serde_json::from_slice(&output.stdout);
        (answer.unwrap_or_else(|error| panic!("{error}: {}", output_text(&output))), output.status.code())
    }

    /// The state and message of one of the doctor's checks.
    fn checked(&self, name: &str) -> (String, String) {
        let (answer, _) = self.json(&["doctor", "--json"]);
        let check = answer["checks"].as_array().unwrap().iter().find(|check| check["check"] == name);
        let check = check.unwrap_or_else(|| panic!("there is no check {name}: {answer:#}"));
        (check["state"].as_str().unwrap().to_owned(), check["said"].as_str().unwrap().to_owned())
    }
}

#[test]
fn a_project_begins_with_settings_and_a_plan_that_runs() {
    let project = Project::new();
    let begun = project.rutter(&["init"]);
    assert_eq!(begun.status.code(), Some(0), "{}", output_text(&begun));
    let message = output_text(&begun);
    for part in ["claude mcp add rutter -- ", "codex mcp add rutter -- ", "mcpServers", "opencode.json"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(project.read(".gitignore"), ".rutter/\n");
    let (ran, code) = project.json(&["run", "plans/first.yaml", "--json"]);
    assert_eq!((&ran["status"], code), (&json!("completed"), Some(0)), "{ran:#}");
    assert!(project.path(".rutter/rutter.db").exists());
    let (checked, code) = project.json(&["config", "check", "--json"]);
    assert_eq!((&checked["ok"], code), (&json!(true), Some(0)), "{checked}");
}

#[test]
fn existing_files_are_overwritten_only_with_force() {
    let project = Project::new();
    fs::write(project.path("rutter.toml"), "dir = 'mine'").unwrap();
    let (refused, code) = project.json(&["init", "--json"]);
    assert_eq!((&refused["error"]["code"], code), (&json!("file.exists"), Some(2)), "{refused}");
    assert_eq!(project.read("rutter.toml"), "dir = 'mine'");
    assert!(!project.path("plans").exists() && !project.path(".gitignore").exists(), "nothing was changed");
    fs::write(project.path(".gitignore"), "target").unwrap();
    let (begun, code) = project.json(&["init", "--json", "--force"]);
    assert_eq!((&begun["ok"], code), (&json!(true), Some(0)), "{begun}");
    assert_eq!(project.read(".gitignore"), "target\n.rutter/\n");
    project.json(&["init", "--json", "--force"]);
    assert_eq!(project.read(".gitignore"), "target\n.rutter/\n", "one line is enough");
}

#[test]
fn servers_of_other_programs_are_imported_without_their_secrets() {
    let project = Project::new();
    let list = |name: &str| json!({ "mcpServers": { name: { "command": "/bin/true" } } });
    let mut claude = list("top");
    claude["projects"] = json!({ project.path("").to_string_lossy().trim_end_matches('/'): list("own"),
        "/elsewhere": list("foreign") });
    let with_secret = r#"{ // as editors allow
        "mcpServers": { "hub": { "command": "/bin/true", "env": { "HUB_TOKEN": "${HUB_TOKEN}", "HUB_KEY": "in-the-clear" } },
                        "rutter": { "command": "rutter", "args": ["mcp"] }, } }"#;
    fs::create_dir_all(project.path(".vscode")).unwrap();
    fs::create_dir_all(project.path(".cursor")).unwrap();
    fs::create_dir_all(project.home(".config/Claude")).unwrap();
    fs::write(project.path(".mcp.json"), with_secret).unwrap();
    fs::write(project.path(".cursor/mcp.json"), list("cursor").to_string()).unwrap();
    fs::write(project.path(".vscode/mcp.json"), r#"{ "servers": { "code": { "command": "/bin/true" } } }"#).unwrap();
    fs::write(project.home(".claude.json"), claude.to_string()).unwrap();
    fs::write(project.home(".config/Claude/claude_desktop_config.json"), list("desk").to_string()).unwrap();
    let output = project.command(&["init", "--json"]).env("HUB_TOKEN", "from-the-environment").output().unwrap();
    let begun: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(begun["imported"].as_array().map(Vec::len), Some(5), "{begun:#}");
    let settings = project.read("rutter.toml");
    for server in ["hub", "cursor", "code", "top", "own", "desk"] {
        assert!(settings.contains(&format!("[servers.{server}]")), "{server}: {settings}");
    }
    assert!(!settings.contains("[servers.rutter]") && !settings.contains("foreign"), "{settings}");
    for secret in ["from-the-environment", "in-the-clear"] {
        assert!(!settings.contains(secret) && !output_text(&output).contains(secret), "{settings}");
    }
    assert!(settings.contains("HUB_TOKEN = \"${secret:hub_token}\""), "{settings}");
    let imported = project.command(&["tools", "import", ".mcp.json"]).env("HUB_TOKEN", "from-the-environment").output();
    let imported = output_text(&imported.unwrap());
    assert!(imported.contains("${secret:hub_token}") && !imported.contains("from-the-environment"), "{imported}");
    // Both secrets are needed, and the missing one is named.
    let (state, message) = project.checked("secrets");
    assert_eq!(state, "failed", "{message}");
}

#[test]
fn lists_can_be_named_or_ignored() {
    let project = Project::new();
    fs::write(project.path(".mcp.json"), r#"{ "mcpServers": { "found": { "command": "x" } } }"#).unwrap();
    fs::write(project.path("list.json"), r#"{ "mcpServers": { "named": { "command": "x" } } }"#).unwrap();
    project.json(&["init", "--json", "--import", "list.json"]);
    let settings = project.read("rutter.toml");
    assert!(settings.contains("[servers.named]") && !settings.contains("[servers.found]"), "{settings}");
    project.json(&["init", "--json", "--force", "--no-import"]);
    assert!(!project.read("rutter.toml").contains("\n[servers"), "no server was imported");
    let (refused, code) = project.json(&["init", "there", "--json", "--import", "missing.json"]);
    assert_eq!((&refused["error"]["code"], code), (&json!("file.unreadable"), Some(2)), "{refused}");
    assert!(!project.path("there").exists(), "nothing was changed");
}

#[test]
fn every_setting_has_an_origin_and_no_secret_is_printed() {
    let project = Project::new();
    let near =
        "dir = 'near'\n[servers.a]\ncommand = 'x'\nenv = { A_TOKEN = 'in-the-clear', B = 'b' }\n[limits]\ncalls = 3\n";
    let far = "[servers.a]\ncommand = 'far'\ntrust = true\n[servers.b]\ncommand = 'y'\n[retention]\npayloads = '90d'\n";
    fs::write(project.path("rutter.toml"), near).unwrap();
    fs::create_dir_all(project.home(".config/rutter")).unwrap();
    fs::write(project.home(".config/rutter/config.toml"), far).unwrap();
    let output = project.command(&["config", "show", "--json"]).env("RUTTER_LOG", "info").output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let settings = answer["settings"].as_array().unwrap();
    let held = |key: &str| {
        let found = settings.iter().find(|held| held["key"] == key);
        found.map(|held| (held["value"].clone(), held["origin"].clone()))
    };
    let file = |name: &str, line: u64| json!({ "kind": "file", "path": name, "line": line });
    let far = project.home(".config/rutter/config.toml");
    let default = json!({ "kind": "default" });
    for (key, value, origin) in [
        ("dir", json!("near"), file("rutter.toml", 1)),
        ("servers.a.command", json!("x"), file("rutter.toml", 3)),
        ("servers.a.env.A_TOKEN", json!("(hidden)"), file("rutter.toml", 4)),
        ("servers.a.env.B", json!("b"), file("rutter.toml", 4)),
        ("servers.b.command", json!("y"), file(far.to_str().unwrap(), 5)),
        ("retention.payloads", json!("90d"), file(far.to_str().unwrap(), 7)),
        ("retention.executions", json!("never"), default.clone()),
        ("limits.calls", json!(3), file("rutter.toml", 6)),
        ("limits.calls_per_server", json!(8), default),
        ("server.listen", json!("127.0.0.1:0"), json!({ "kind": "variable", "name": "RUTTER_LISTEN" })),
        ("log", json!("info"), json!({ "kind": "variable", "name": "RUTTER_LOG" })),
        ("operator", json!("operator"), json!({ "kind": "variable", "name": "USER" })),
    ] {
        assert_eq!(held(key), Some((value, origin)), "{key}");
    }
    assert_eq!(held("servers.a.trust"), None, "a server is taken as a whole from the nearest file");
    assert!(!output_text(&output).contains("in-the-clear"));
    let flag = output_text(&project.rutter(&["config", "show", "--origin", "--dir", "said"]));
    assert!(flag.lines().any(|line| line.starts_with("dir ") && line.ends_with("--dir")), "{flag}");
    assert!(flag.contains("rutter.toml:3") && !flag.contains("in-the-clear"), "{flag}");
}

#[test]
fn mistakes_in_settings_and_variables_are_reported() {
    let project = Project::new();
    let output = project.command(&["config", "check"]).env("RUTTER_LISTN", "x").output().unwrap();
    assert!(output_text(&output).contains("RUTTER_LISTEN?"), "{}", output_text(&output));
    let output = project.command(&["config", "check"]).env("RUTTER_LISTEN", "everywhere").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", output_text(&output));
    assert!(output_text(&output).contains("127.0.0.1:7411"), "{}", output_text(&output));
    fs::write(project.path("rutter.toml"), "[commands.x.tools.y]\ndescription = 'x'\nargv = ['relative']\n").unwrap();
    let (refused, code) = project.json(&["config", "check", "--json"]);
    assert_eq!((&refused["error"]["code"], code), (&json!("config.invalid"), Some(2)), "{refused}");
    fs::write(project.path("rutter.toml"), "dirr = 'x'").unwrap();
    let (checks, code) = project.json(&["doctor", "--json"]);
    assert_eq!((&checks["ok"], code), (&json!(false), Some(1)), "{checks}");
    assert!(checks.to_string().contains("did you mean"), "{checks}");
}

#[test]
fn the_doctor_finds_problems_and_suggests_fixes() {
    let project = Project::new();
    project.json(&["init", "--json", "--no-import"]);
    assert_eq!(project.checked("database").0, "fine");
    project.json(&["run", "plans/first.yaml", "--json"]);
    let (answer, code) = project.json(&["doctor", "--json"]);
    assert_eq!((&answer["ok"], code), (&json!(true), Some(0)), "{answer:#}");
    for check in answer["checks"].as_array().unwrap() {
        assert!(check["state"] == "fine" || check["fix"].is_string(), "{check}");
    }

    let token = project.path(".rutter/agent.token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    let (state, message) = project.checked("keys and tokens");
    assert!(state == "failed" && message.contains("agent.token"), "{message}");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let output = project.command(&["doctor"]).env("RUTTER_LISTEN", &taken).output().unwrap();
    assert!(output_text(&output).contains(&format!("{taken} cannot be used")), "{}", output_text(&output));

    let settings = project.read("rutter.toml") + "[servers.broken]\ncommand = '/no/such/program'\n";
    fs::write(project.path("rutter.toml"), settings).unwrap();
    assert_eq!(project.checked("tools of broken").0, "failed");
    assert_eq!(project.rutter(&["doctor"]).status.code(), Some(1));

    let database = rusqlite::Connection::open(project.path(".rutter/rutter.db")).unwrap();
    database.execute("update entry set hash = randomblob(32) where seq = 2", []).unwrap();
    drop(database);
    assert_eq!(project.checked("journal of default").0, "failed");
}

#[test]
fn output_is_not_coloured_without_a_terminal_and_a_closed_pipe_is_no_error() {
    let project = Project::new();
    project.json(&["init", "--json", "--no-import"]);
    let commands: &[&[&str]] = &[
        &["init", "--force"],
        &["doctor"],
        &["config", "show", "--origin"],
        &["config", "check"],
        &["man"],
        &["man", "--markdown"],
        &["plan", "save", "plans/first.yaml"],
        &["plan", "list"],
    ];
    for words in commands {
        let output = project.command(words).env("NO_COLOR", "1").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?} {}", output_text(&output));
        assert!(!output_text(&output).contains('\x1b'), "{words:?} {}", output_text(&output));
        let mut child = project.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{words:?} {}", output_text(&ended));
        assert!(!output_text(&ended).contains("panicked"), "{words:?} {}", output_text(&ended));
    }
}

#[test]
fn with_json_errors_are_json_too() {
    let project = Project::new();
    for words in [
        &["doctor", "--json", "--no-such-flag"][..],
        &["plan", "check", "--json"],
        &["no-such-command", "--json"],
        &["man", "--json", "no-such-command"],
        &["tools", "import", "--json", "missing.json"],
        &["plan", "show", "--json", "plan_x"],
        &["stop", "--json"],
    ] {
        let (answer, code) = project.json(words);
        assert_eq!(answer["ok"], false, "{words:?} {answer}");
        assert!(answer["error"]["message"].is_string(), "{words:?} {answer}");
        assert!(matches!(code, Some(2 | 4)), "{words:?} {code:?}");
    }
    let help = project.rutter(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&help.stdout).contains("init"), "help goes to stdout");
}

#[test]
fn there_is_a_page_for_every_command() {
    let project = Project::new();
    let (written, _) = project.json(&["man", "--dir", "pages", "--json"]);
    let files = written["files"].as_array().unwrap();
    assert!(files.len() > 50, "{}", files.len());
    for name in ["rutter.1", "rutter-init.1", "rutter-plan-check.1", "rutter-exec-approve.1"] {
        let text = project.read(&format!("pages/{name}"));
        assert!(text.contains(".SH NAME") && text.contains(".TH"), "{name}: {text}");
    }
    let page = String::from_utf8(project.rutter(&["man", "plan", "check"]).stdout).unwrap();
    assert_eq!(page, project.read("pages/rutter-plan-check.1"));
}
