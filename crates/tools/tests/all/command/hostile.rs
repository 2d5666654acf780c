//! Programs that exceed their limits.

use super::fixture::{CommandFixture, call, done, lives, maybe};
use rutter_core::tool::FailureCategory;
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_gibibyte_of_output_costs_its_own_call_only() {
    let fixture = CommandFixture::new();
    let server = fixture.shell("head -c 1073741824 /dev/zero; touch finished", "output_kib = 64");
    let started = Instant::now();
    let (category, message) = maybe(call(&server, json!({})).await);
    assert!(category == FailureCategory::Protocol && message.contains("64 KiB"), "{message}");
    assert!(started.elapsed() < Duration::from_secs(60));
    let server = fixture.shell("head -c 65536 /dev/zero | tr '\\0' x", "output_kib = 64");
    assert_eq!(done(call(&server, json!({})).await).as_str().unwrap().len(), 65536);
    let server = fixture.shell("head -c 65537 /dev/zero | tr '\\0' x", "output_kib = 64");
    assert_eq!(maybe(call(&server, json!({})).await).0, FailureCategory::Protocol);
}

#[tokio::test]
async fn endless_stderr_is_cut_to_its_end() {
    let fixture = CommandFixture::new();
    let server =
        fixture.shell("head -c 100000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo 'the \x1b[31mend' >&2; exit 1", "");
    let (category, message) = maybe(call(&server, json!({})).await);
    assert_eq!(category, FailureCategory::ToolError);
    assert!(message.contains("the \u{fffd}[31mend") && message.len() < 5_000, "{message}");
}

#[tokio::test]
async fn a_fork_bomb_is_stopped() {
    let fixture = CommandFixture::new();
    // As fast as the endless kind, but it ends by itself at a thousand should nothing stop it.
    let script =
        "echo $$ > pid; bomb() { [ $1 = 10 ] && exec sleep 60; bomb $(($1+1)) & bomb $(($1+1)) & wait; }; bomb 0";
    let server = fixture.shell(script, "processes = 20");
    let started = Instant::now();
    let (category, message) = maybe(call(&server, json!({})).await);
    assert_eq!(category, FailureCategory::ToolError, "{message}");
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    let group = std::fs::read_to_string(fixture.cwd().join("pid")).unwrap();
    let left = std::fs::read_dir("/proc").unwrap().filter_map(|folder| {
        let stat = std::fs::read_to_string(folder.unwrap().path().join("stat")).ok()?;
        let fields: Vec<String> = stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect();
        (fields[2] == group.trim() && fields[0] != "Z").then_some(stat)
    });
    assert_eq!(left.count(), 0);
}

#[tokio::test]
async fn memory_ends_at_its_limit() {
    let fixture = CommandFixture::new();
    let path = fixture.script("hog.py", "#!/usr/bin/python3\nx = bytearray(1 << 30)\nprint(len(x))\n");
    let argv = format!("[tools.go]\nargv = ['{}']\ndescription = 'x'\n", path.display());
    let (category, message) = maybe(call(&fixture.server(&argv), json!({})).await);
    assert!(category == FailureCategory::ToolError && message.contains("MemoryError"), "{message}");
    let server = fixture.server(&format!("{argv}memory_mib = 2048"));
    assert_eq!(done(call(&server, json!({})).await), 1 << 30);
}

#[tokio::test]
async fn processor_time_ends_at_its_limit() {
    let fixture = CommandFixture::new();
    let server = fixture.shell("while :; do :; done", "cpu_seconds = 1");
    let (category, message) = maybe(call(&server, json!({})).await);
    assert!(category == FailureCategory::ToolError && message.contains("processor time"), "{message}");
}

#[tokio::test]
async fn a_daemon_that_keeps_the_pipes_open_delays_nothing_and_dies() {
    let fixture = CommandFixture::new();
    let server = fixture
        .shell("setsid sh -c 'echo $$ > away; exec sleep 1000' & while ! [ -s away ]; do :; done; echo answered", "");
    let started = Instant::now();
    assert_eq!(done(call(&server, json!({})).await), "answered");
    assert!(started.elapsed() < Duration::from_secs(60));
    let pid = std::fs::read_to_string(fixture.cwd().join("away")).unwrap().trim().parse().unwrap();
    assert!(!lives(pid));
}

#[tokio::test]
async fn a_daemon_that_also_hides_its_origin_delays_nothing() {
    let fixture = CommandFixture::new();
    let server = fixture.shell(
        "setsid env -i sh -c 'echo $$ > away; exec sleep 60' & while ! [ -s away ]; do :; done; echo answered",
        "",
    );
    let started = Instant::now();
    assert_eq!(done(call(&server, json!({})).await), "answered");
    assert!(started.elapsed() < Duration::from_secs(40), "it holds the pipes for a minute");
}

#[tokio::test]
async fn the_home_of_our_user_stays_closed() {
    let fixture = CommandFixture::new();
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".ssh")).unwrap();
    std::fs::write(home.path().join(".ssh/id_ed25519"), "private").unwrap();
    let key = home.path().join(".ssh/id_ed25519").display().to_string();
    let server = fixture.shell(&format!("cat {key} || cat /proc/{}/environ || echo closed", std::process::id()), "");
    assert_eq!(done(call(&server, json!({})).await), "closed");
    let allowed = format!("read = ['{}']", home.path().display());
    let server = fixture.shell(&format!("cat {key}"), &allowed);
    assert_eq!(done(call(&server, json!({})).await), "private");
}
