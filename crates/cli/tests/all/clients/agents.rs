//! The command lines of two agents find Rutter and report that they are connected. They run without a network, in an
//! empty home, without keys: listing servers needs none of these.

use crate::clients::fixture::{ClientFixture, PATIENCE};
use crate::clients::installed::clients;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn claude_code_reports_that_it_is_connected() {
    let fixture = ClientFixture::new();
    let [program, arguments @ ..] = &fixture.front()[..] else { panic!("a program has a name") };
    let server = json!({ "type": "stdio", "command": program, "args": arguments, "env": {} });
    let settings = json!({ "hasCompletedOnboarding": true, "mcpServers": { "rutter": server } });
    fs::write(fixture.path(".claude.json"), settings.to_string()).unwrap();
    connects("@anthropic-ai/claude-code-linux-x64/claude", fixture);
}

#[test]
fn opencode_reports_that_it_is_connected() {
    let fixture = ClientFixture::new();
    let server = json!({ "type": "local", "command": fixture.front(), "enabled": true });
    let settings = json!({ "autoupdate": false, "share": "disabled", "mcp": { "rutter": server } });
    fs::create_dir_all(fixture.path(".config/opencode")).unwrap();
    fs::write(fixture.path(".config/opencode/opencode.json"), settings.to_string()).unwrap();
    connects("opencode-linux-x64/bin/opencode", fixture);
}

/// `PROGRAM mcp list` lists Rutter as "connected"; prints why if it cannot be tested.
fn connects(program: &str, mut fixture: ClientFixture) {
    let program = clients().join("agents/node_modules").join(program);
    if !program.exists() {
        println!("skipped: {} is not installed; scripts/install-mcp-clients --agents installs it", program.display());
        return;
    }
    let Some(mut command) = offline(&program) else {
        println!("skipped: this system does not allow a private network (unshare -rn)");
        return;
    };
    command.args(["mcp", "list"]).current_dir(fixture.path("")).env_clear().env("HOME", fixture.path(""));
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("NO_COLOR", "1");
    let output = fixture.path("said");
    let file = fs::File::create(&output).unwrap();
    command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(20));
    }
    let message = fs::read_to_string(output).unwrap().to_lowercase();
    assert!(message.lines().any(|line| line.contains("rutter") && line.contains("connected")), "{message}");
    assert!(!message.contains("not connected") && !message.contains("failed"), "{message}");
    fixture.leave();
}

/// A program with a private network, which has only loopback. `None` if that is not allowed.
fn offline(program: &Path) -> Option<Command> {
    let own = |program: &Path| {
        let mut command = Command::new("unshare");
        command.args(["-rn", "sh", "-c", "ip link set lo up; exec \"$@\"", "sh"]).arg(program);
        command
    };
    let is_allowed = own(Path::new("true")).output().is_ok_and(|output| output.status.success());
    is_allowed.then(|| own(program))
}
