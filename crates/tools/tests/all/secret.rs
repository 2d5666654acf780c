//! Secrets from real variables, files and programs.

use rutter_core::tool::{FailureCategory, ToolFailure};
use rutter_tools::config::secret::SecretSource;
use rutter_tools::registry::SecretResolver;
use rutter_tools::secret::{BYTES_MAX, EnvironmentLookup, SecretVault, names_in};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CANARY: &str = "canary-of-the-mine";

fn vault(name: &str, source: SecretSource) -> SecretVault {
    SecretVault::new(BTreeMap::from([(name.to_owned(), source)]), real_path())
}

/// Of the real environment only `PATH`.
fn real_path() -> EnvironmentLookup {
    Arc::new(|name| match name {
        "PATH" => std::env::var("PATH").ok(),
        "HOME" => Some("/nonexistent".to_owned()),
        "TOKEN" => Some(CANARY.to_owned()),
        "SHORT" => Some("short".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    })
}

fn env(variable: &str) -> SecretSource {
    SecretSource::Env(variable.to_owned())
}

fn shell(script: &str) -> SecretSource {
    SecretSource::Command(["sh", "-c", script].map(str::to_owned).to_vec())
}

async fn refused(source: SecretSource) -> ToolFailure {
    let failure = vault("token", source).resolve("token").await.unwrap_err();
    assert!(failure.message.contains("\"token\""), "{failure}");
    assert!(!failure.message.contains(CANARY), "{failure}");
    failure
}

fn write(folder: &Path, mode: u32, bytes: &[u8]) -> PathBuf {
    let path = folder.join(format!("secret-{mode:o}-{}", bytes.len()));
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn names_in_a_text_are_found() {
    let names = names_in("a ${secret:x} $ {y} ${z} ${secret:b c}${secret:x}").unwrap();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["b c", "x"]);
    names_in("a ${secret:x").unwrap_err();
}

#[tokio::test]
async fn only_objects_that_are_exactly_a_reference_are_filled() {
    let vault = vault("token", env("TOKEN"));
    let value = json!({
        "a": {"secret": "token"},
        "b": [{"secret": "token"}, {"c": {"secret": "token"}}],
        "d": {"secret": "token", "more": 1},
        "e": {"secret": 7},
        "secret": "token",
        "f": "${secret:token}",
    });
    let filled = vault.fill(&value).await.unwrap();
    assert_eq!(
        filled,
        json!({
            "a": CANARY,
            "b": [CANARY, {"c": CANARY}],
            "d": {"secret": "token", "more": 1},
            "e": {"secret": 7},
            "secret": "token",
            "f": "${secret:token}",
        })
    );
    assert_eq!(vault.fill(&json!({"secret": "token"})).await.unwrap(), json!(CANARY));
}

#[tokio::test]
async fn an_unknown_name_is_named() {
    let vault = vault("token", env("TOKEN"));
    let failure = vault.fill(&json!([{"secret": "tokken"}])).await.unwrap_err();
    assert_eq!(failure.category, FailureCategory::InvalidInput);
    assert!(failure.message.contains("\"tokken\""), "{failure}");
    assert!(vault.fill_text("${secret:tokken}").await.is_err());
    assert!(vault.has("token") && !vault.has("tokken"));
}

#[tokio::test]
async fn texts_are_filled_once_and_not_expanded_again() {
    let lookup: EnvironmentLookup = Arc::new(|name| Some(format!("${{secret:b}} from {name}")));
    let sources = BTreeMap::from([("a".to_owned(), env("A")), ("b".to_owned(), env("B"))]);
    let vault = SecretVault::new(sources, lookup);
    let text = vault.fill_text("<${secret:a}|${secret:b}|${other}>").await.unwrap();
    assert_eq!(text.text(), "<${secret:b} from A|${secret:b} from B|${other}>");
}

#[tokio::test]
async fn a_variable_must_be_set_and_long_enough_to_be_recognized() {
    assert_eq!(vault("token", env("TOKEN")).resolve("token").await.unwrap().text(), CANARY);
    assert!(refused(env("MISSING")).await.message.contains("MISSING is not set"));
    assert!(refused(env("SHORT")).await.message.contains("shorter than 6"));
    assert!(refused(env("EMPTY")).await.message.contains("shorter than 6"));
}

#[tokio::test]
async fn a_file_must_not_be_open_to_everyone() {
    let folder = tempfile::tempdir().unwrap();
    for (mode, allowed) in [(0o600, true), (0o640, true), (0o400, true), (0o644, false), (0o604, false), (0o602, false)]
    {
        let path = write(folder.path(), mode, format!("{CANARY}\n").as_bytes());
        if allowed {
            let secret = vault("token", SecretSource::File(path)).resolve("token").await.unwrap();
            assert_eq!(secret.text(), CANARY, "{mode:o}");
        } else {
            let failure = refused(SecretSource::File(path)).await;
            assert!(failure.message.contains("chmod o="), "{mode:o}: {failure}");
        }
    }
}

#[tokio::test]
async fn a_file_may_be_as_large_as_the_limit_and_no_larger() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), 0o600, &vec![b'x'; BYTES_MAX]);
    assert_eq!(vault("token", SecretSource::File(path)).resolve("token").await.unwrap().text().len(), BYTES_MAX);
    let path = write(folder.path(), 0o600, &vec![b'x'; BYTES_MAX + 1]);
    assert!(refused(SecretSource::File(path)).await.message.contains("larger than 65536"));
}

#[tokio::test]
async fn unreadable_files_are_refused_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (path, message) in [
        (folder.path().join("missing"), "No such file"),
        (folder.path().to_owned(), "is not a file"),
        (pipe, "is not a file"),
        (write(folder.path(), 0o600, b"\xff\xfe\xff\xfe\xff\xfe\xff"), "UTF-8"),
    ] {
        assert!(refused(SecretSource::File(path)).await.message.contains(message), "{message}");
    }
}

#[tokio::test]
async fn a_program_prints_its_secret_with_almost_no_environment() {
    let secret = vault("token", shell("env | cut -d= -f1 | sort | tr '\\n' ' '")).resolve("token").await.unwrap();
    let names: Vec<&str> =
        secret.text().split_whitespace().filter(|name| !matches!(*name, "PWD" | "SHLVL" | "_")).collect();
    assert_eq!(names, ["HOME", "PATH"]);
    let argv = ["printf", "%s", "$(not a shell)"].map(str::to_owned).to_vec();
    assert_eq!(vault("token", SecretSource::Command(argv)).resolve("token").await.unwrap().text(), "$(not a shell)");
}

#[tokio::test]
async fn a_program_that_fails_or_prints_too_much_is_refused() {
    let script = format!("echo {CANARY}; echo {CANARY} >&2; exit 3");
    assert!(refused(shell(&script)).await.message.contains("exit status: 3"));
    assert!(refused(shell("yes canary")).await.message.contains("larger than 65536"));
    assert!(refused(SecretSource::Command(Vec::new())).await.message.contains("empty"));
    let missing = SecretSource::Command(vec!["no-such-program-here".to_owned()]);
    assert!(refused(missing).await.message.contains("could not be started"));
}

#[tokio::test]
async fn a_program_that_hangs_is_ended_with_all_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let script = format!("sleep 1000 & echo $$ $! > {}; wait", pids.display());
    let begun = Instant::now();
    let failure = refused(shell(&script)).await;
    assert_eq!(failure.category, FailureCategory::Unavailable);
    assert!(begun.elapsed() >= Duration::from_secs(10) && begun.elapsed() < Duration::from_secs(20));
    let is_running = |pid: &str| {
        let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !status.is_empty() && !status.contains(") Z ")
    };
    let pids = fs::read_to_string(pids).unwrap();
    assert_eq!(pids.split_whitespace().count(), 2);
    while pids.split_whitespace().any(is_running) {
        assert!(begun.elapsed() < Duration::from_secs(25), "{pids} outlived the lookup");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_value_is_cached_for_a_minute_and_read_once_for_many() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let lookup: EnvironmentLookup =
        Arc::new(move |_| Some(format!("canary number {}", count.fetch_add(1, Ordering::SeqCst))));
    let vault = SecretVault::new(BTreeMap::from([("token".to_owned(), env("X"))]), lookup);
    tokio::time::pause();
    futures::future::join_all((0..100).map(|_| vault.resolve("token"))).await;
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(vault.resolve("token").await.unwrap().text(), "canary number 0");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(vault.resolve("token").await.unwrap().text(), "canary number 1");
    let redactor = vault.redactor();
    assert_eq!(redactor.text("canary number 0, canary number 1"), "[redacted:token], [redacted:token]");
}

#[tokio::test]
async fn concurrent_lookups_run_a_program_once() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let vault = vault("token", shell(&format!("echo asked >> {}; echo {CANARY}", log.display())));
    let all = futures::future::join_all((0..20).map(|_| vault.resolve("token"))).await;
    assert!(all.iter().all(|secret| secret.as_ref().unwrap().text() == CANARY));
    assert_eq!(fs::read_to_string(log).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn a_program_that_fails_is_run_again_only_for_later_callers() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let vault = vault("token", shell(&format!("echo asked >> {}; exit 1", log.display())));
    let all = futures::future::join_all((0..20).map(|_| vault.resolve("token"))).await;
    assert!(all.iter().all(Result::is_err));
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 1);
    vault.resolve("token").await.unwrap_err();
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 2);
}

#[tokio::test]
async fn the_redactor_knows_what_was_looked_up_and_debug_texts_show_nothing() {
    let vault = vault("token", env("TOKEN"));
    assert_eq!(vault.redactor().text(CANARY), CANARY, "it was not looked up yet");
    let secret = vault.resolve("token").await.unwrap();
    assert_eq!(vault.redactor().text(&format!("a {CANARY} b")), "a [redacted:token] b");
    for text in [format!("{secret:?}"), format!("{vault:?}"), format!("{:?}", vault.redactor())] {
        assert!(!text.contains("canary"), "{text}");
    }
}

#[test]
fn sources_are_read_from_configuration() {
    let text = "a = {env = 'A'}\nb = {file = '/b'}\nc = {command = ['pass', 'show', 'c']}\n";
    let sources: BTreeMap<String, SecretSource> = toml_edit::de::from_str(text).unwrap();
    assert!(matches!(&sources["c"], SecretSource::Command(argv) if argv.len() == 3));
    for text in ["a = {value = 'x'}", "a = 'x'", "a = {env = 'A', file = '/b'}", "a = {}"] {
        toml_edit::de::from_str::<BTreeMap<String, SecretSource>>(text).unwrap_err();
    }
}
