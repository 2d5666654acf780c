//! What a program gets: its arguments as they are, its few variables, its standard input.

use super::fixture::{CommandFixture, call, done, not_done};
use rutter_core::tool::FailureCategory;
use serde_json::{Value, json};

/// Texts that mean something to a shell, an option parser, a terminal or a template. None begins with `-`.
const PAYLOADS: [&str; 56] = [
    "; touch pwned",
    "&& touch pwned",
    "|| touch pwned",
    "| touch pwned",
    "& touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    "${IFS}touch${IFS}pwned",
    "$PATH",
    "${PATH}",
    "$0",
    "$@",
    "$*",
    "$$",
    "$?",
    "!!",
    "!$",
    "\ntouch pwned\n",
    "\r\ntouch pwned",
    "\ttouch",
    "'; touch pwned; '",
    "\"; touch pwned; \"",
    "'",
    "\"",
    "\\",
    "\\'",
    "\\\"",
    "\\n",
    "a b",
    "  ",
    "",
    "*",
    "?",
    "[a-z]",
    "~",
    "~root",
    "{a,b}",
    "{value}",
    "{{value}}",
    "{other}",
    "%s%n%x",
    "%00",
    "> pwned",
    ">> pwned",
    "< /etc/passwd",
    "2>&1",
    "<(touch pwned)",
    "# comment",
    "a=b",
    "\u{1b}[31mred",
    "\u{202e}txt.exe",
    "ünïcödé",
    "🦀",
    "../../etc/passwd",
    "file:///etc/passwd",
    "'$(touch pwned)'",
];

/// These could be options; they pass only where the operator allows options.
const OPTIONS: [&str; 6] = ["-c", "-rf", "--", "--help", "-", "-oProxyCommand=touch pwned"];

const ECHO: &str = "#!/usr/bin/python3\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n";

fn echo(fixture: &CommandFixture, more: &str) -> rutter_tools::command::CommandServer {
    let path = fixture.script("echo.py", ECHO);
    fixture.server(&format!(
        "[tools.go]\nargv = ['{}', 'first', '{{value}}', '--value={{value}}', 'last']\ndescription = 'echo'\n\
         input = {{ type = 'object', properties = {{ value = {{}} }} }}\n{more}",
        path.display()
    ))
}

#[tokio::test]
async fn payloads_reach_the_program_as_they_are() {
    let fixture = CommandFixture::new();
    let server = echo(&fixture, "");
    for payload in PAYLOADS {
        let seen = done(call(&server, json!({ "value": payload })).await);
        assert_eq!(seen, json!(["first", payload, format!("--value={payload}"), "last"]), "{payload:?}");
    }
    let made: Vec<_> = std::fs::read_dir(fixture.cwd()).unwrap().collect();
    assert!(made.is_empty(), "{made:?}");
}

#[tokio::test]
async fn values_that_look_like_options_are_refused_until_allowed() {
    let fixture = CommandFixture::new();
    let (strict, open) = (echo(&fixture, ""), echo(&fixture, "options = true"));
    for payload in OPTIONS {
        let (category, message) = not_done(call(&strict, json!({ "value": payload })).await);
        assert_eq!(category, FailureCategory::InvalidInput, "{message}");
        let seen = done(call(&open, json!({ "value": payload })).await);
        assert_eq!(seen[1], payload);
    }
    let (category, _) = not_done(call(&open, json!({ "value": "a\0b" })).await);
    assert_eq!(category, FailureCategory::InvalidInput);
}

#[tokio::test]
async fn other_values_are_passed_as_json_and_missing_ones_left_out() {
    let fixture = CommandFixture::new();
    let server = echo(&fixture, "");
    for (value, text) in [
        (json!(3.5), "3.5"),
        (json!(true), "true"),
        (json!(["a", 1]), r#"["a",1]"#),
        (json!({ "a": "{value}" }), r#"{"a":"{value}"}"#),
    ] {
        assert_eq!(done(call(&server, json!({ "value": value })).await)[1], text);
    }
    assert_eq!(done(call(&server, json!({})).await), json!(["first", "last"]));
}

#[tokio::test]
async fn a_program_has_the_declared_environment_and_the_key_only() {
    let fixture = CommandFixture::new();
    let path = fixture.script("env.py", "#!/usr/bin/python3\nimport json, os\nprint(json.dumps(dict(os.environ)))\n");
    let server = fixture.server(&format!(
        "env = {{ OWN = 'set' }}\nenv_pass = ['KNOWN', 'ABSENT']\n[tools.go]\nargv = ['{}']\ndescription = 'x'",
        path.display()
    ));
    let Value::Object(seen) = done(call(&server, json!({})).await) else { panic!() };
    let mut names: Vec<&str> = seen.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["HOME", "KNOWN", "LANG", "OWN", "PATH", "RUTTER_CHILD", "RUTTER_KEY", "TMPDIR"]);
    assert_eq!((&seen["RUTTER_KEY"], &seen["KNOWN"]), (&json!("key-1"), &json!("given")));
    assert_eq!(seen["HOME"], fixture.cwd().canonicalize().unwrap().to_str().unwrap());
}

#[tokio::test]
async fn parameters_come_on_standard_input_whole_or_not_at_all() {
    let fixture = CommandFixture::new();
    let large = "x".repeat(300_000);
    let server = fixture.shell("wc -c; wc -l < /dev/null", "stdin = 'json'");
    let text = done(call(&server, json!({ "large": large })).await);
    assert_eq!(text, format!("{}\n0", large.len() + r#"{"large":""}"#.len() + 1));
    let server = fixture.shell("wc -c", "");
    assert_eq!(done(call(&server, json!({ "large": large })).await), "0");
    let server = fixture.shell("exec echo unread", "stdin = 'json'");
    assert_eq!(done(call(&server, json!({ "large": large })).await), "unread");
}
