//! The command lines of two agents find Rutter and say that they are connected. They run without a network, in an empty
//! home, without keys: listing servers needs none of these.

use crate::harbour::{Harbour, PATIENCE};
use crate::installed::clients;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn claude_code_says_that_it_is_connected() {
    let harbour = Harbour::new();
    let [program, arguments @ ..] = &harbour.front()[..] else { panic!("a program has a name") };
    let server = json!({ "type": "stdio", "command": program, "args": arguments, "env": {} });
    let settings = json!({ "hasCompletedOnboarding": true, "mcpServers": { "rutter": server } });
    fs::write(harbour.path(".claude.json"), settings.to_string()).unwrap();
    connects("@anthropic-ai/claude-code-linux-x64/claude", harbour);
}

#[test]
fn opencode_says_that_it_is_connected() {
    let harbour = Harbour::new();
    let server = json!({ "type": "local", "command": harbour.front(), "enabled": true });
    let settings = json!({ "autoupdate": false, "share": "disabled", "mcp": { "rutter": server } });
    fs::create_dir_all(harbour.path(".config/opencode")).unwrap();
    fs::write(harbour.path(".config/opencode/opencode.json"), settings.to_string()).unwrap();
    connects("opencode-linux-x64/bin/opencode", harbour);
}

/// `PROGRAM mcp list` names Rutter and says "connected"; says why where it cannot be tried.
fn connects(program: &str, mut harbour: Harbour) {
    let program = clients().join("agents/node_modules").join(program);
    if !program.exists() {
        println!(
            "skipped: {} is not there; scripts/install-mcp-clients --agents installs it",
            program.display()
        );
        return;
    }
    let Some(mut command) = offline(&program) else {
        println!("skipped: this system lets nobody have a network of their own (unshare -rn)");
        return;
    };
    command.args(["mcp", "list"]).current_dir(harbour.path("")).env_clear().env("HOME", harbour.path(""));
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("NO_COLOR", "1");
    let output = harbour.path("said");
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
    let said = fs::read_to_string(output).unwrap().to_lowercase();
    assert!(said.lines().any(|line| line.contains("rutter") && line.contains("connected")), "{said}");
    assert!(!said.contains("not connected") && !said.contains("failed"), "{said}");
    harbour.leave();
}

/// A program with a network of its own, which has nothing but loopback. `None` where that is not allowed.
fn offline(program: &Path) -> Option<Command> {
    let own = |program: &Path| {
        let mut command = Command::new("unshare");
        command.args(["-rn", "sh", "-c", "ip link set lo up; exec \"$@\"", "sh"]).arg(program);
        command
    };
    let is_allowed = own(Path::new("true")).output().is_ok_and(|output| output.status.success());
    is_allowed.then(|| own(program))
}
