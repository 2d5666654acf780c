//! The output of `rutter journal`, on a database with executions that ended in different ways.

use crate::store::fixture::{Answer, StoreFixture};
use crate::store::seen;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

fn done(answer: Answer) -> Answer {
    assert_eq!(answer.code, 0, "{answer:?}");
    answer
}

/// The result of the second verifier, which shares no code with the first, for an export.
fn python(export: &Path, key: &str) -> (Option<i32>, String) {
    let python = std::env::var("RUTTER_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/verify_journal.py");
    let output = Command::new(&python).arg(script).arg(export).args(["--key", key]).output().unwrap();
    let message = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), message)
}

#[test]
fn every_command_explains_itself() {
    let fixture = StoreFixture::empty();
    for command in ["verify", "export", "checkpoint", "receipt", "key", "show", "tail", "erase"] {
        insta::assert_snapshot!(format!("help_{command}"), fixture.seen(&["journal", command, "--help"]));
    }
    insta::assert_snapshot!("help", fixture.seen(&["journal", "--help"]));
}

#[test]
fn a_database_is_verified_with_the_key_beside_it() {
    let fixture = StoreFixture::new();
    done(fixture.rutter(&["journal", "checkpoint", "--out", "checkpoint"]));
    done(fixture.rutter(&["journal", "receipt", "exec_2-order", "--seq", "7", "--out", "receipt"]));
    let text = seen(
        &fixture,
        &[
            &["journal", "verify"],
            &["journal", "verify", "--projections", "--require", "v1"],
            &["journal", "verify", "--require", "v2"],
            &["journal", "verify", "--require", "v2", "--checkpoint", "checkpoint"],
            &["journal", "verify", "--require", "v2", "--receipt", "receipt"],
            &["journal", "verify", "--key", "data/ledger.pub", "--json"],
            &["journal", "key"],
            &["journal", "checkpoint"],
            &["journal", "receipt", "exec_2-order"],
        ],
    );
    insta::assert_snapshot!("verify", text);
}

#[test]
fn an_export_is_verified_by_rutter_and_by_an_independent_program() {
    let fixture = StoreFixture::new();
    let key = done(fixture.rutter(&["journal", "key"])).stdout.trim().to_owned();
    done(fixture.rutter(&["journal", "export", "--out", "all.ndjson"]));
    let to_stdout = done(fixture.rutter(&["journal", "export"])).stdout;
    assert_eq!(to_stdout, fixture.read("all.ndjson"));
    let two = ["journal", "export", "--execution", "exec_2-order", "--execution", "exec_4-order"];
    done(fixture.rutter(&[&two[..], &["--out", "two.ndjson"]].concat()));
    for export in ["all.ndjson", "two.ndjson"] {
        let (code, message) = python(&fixture.path(export), &key);
        assert_eq!(code, Some(0), "{export}: {message}");
        assert!(message.starts_with("V1: "), "{message}");
    }
    let left = fs::read_dir(fixture.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.map(|name| name.into_string().unwrap()).all(|name| !name.contains("unfinished")));
    let text = seen(
        &fixture,
        &[
            &["journal", "verify", "--export", "all.ndjson"],
            &["journal", "verify", "--export", "two.ndjson", "--key", "data/ledger.pub"],
            &["journal", "verify", "--export", "two.ndjson", "--key", "data/ledger.pub", "--json"],
            &["journal", "export", "--out", "all.ndjson"],
            &["journal", "export", "--out", "all.ndjson", "--force", "--json"],
            &["journal", "export", "--execution", "exec_9"],
        ],
    );
    insta::assert_snapshot!("export", text);
}

#[test]
fn a_changed_export_is_rejected_and_the_first_bad_entry_is_named() {
    let fixture = StoreFixture::new();
    let export = done(fixture.rutter(&["journal", "export"])).stdout;
    done(fixture.rutter(&["journal", "receipt", "exec_5-off-boarding", "--out", "receipt"]));
    done(fixture.rutter(&["journal", "checkpoint", "--out", "checkpoint"]));
    // The positions of checkpoints depend on time.
    let lines: Vec<&str> = export.lines().filter(|line| !line.starts_with(r#"{"checkpoint""#)).collect();
    fixture.write("cut", &(lines[..20].join("\n") + "\n"));
    fixture.write("broken", &lines.join("\n").replacen("\"seq\":3,", "\"seq\":three,", 1));
    fixture.write("empty", "");
    let other = "other-key+30d52952+AcbaC82/ZSvH8IbtpkqKsmO4m9yoBvt7c7YeUDutzQsv";
    let other = other.replace("30d52952", &key_hash(other));
    let text = seen(
        &fixture,
        &[
            &["journal", "verify", "--export", "data/6-altered.ndjson", "--key", "data/ledger.pub"],
            &["journal", "verify", "--export", "data/6-altered.ndjson", "--json"],
            &["journal", "verify", "--export", "broken"],
            &["journal", "verify", "--export", "empty"],
            &["journal", "verify", "--export", "cut", "--key", "data/ledger.pub"],
            &["journal", "verify", "--export", "cut", "--key", "data/ledger.pub", "--receipt", "receipt"],
            &["journal", "verify", "--export", "cut", "--key", "data/ledger.pub", "--checkpoint", "checkpoint"],
            &["journal", "verify", "--export", "data/6-order.ndjson", "--key", &other],
            &["journal", "verify", "--key", &other],
            &["journal", "verify", "--export", "not-there"],
            &["journal", "verify", "--key", "not-there"],
            &["journal", "verify", "--receipt", "checkpoint"],
            &["journal", "verify", "--require", "v3"],
        ],
    );
    insta::assert_snapshot!("rejected", text);
}

/// The hash in a key's text, which must be right even in a wrong key.
fn key_hash(key: &str) -> String {
    let (name, rest) = key.split_once('+').unwrap();
    let public = rest.split_once('+').unwrap().1;
    let program = "import base64,hashlib,sys; \
                   print(hashlib.sha256(sys.argv[1].encode()+b'\\n'+base64.b64decode(sys.argv[2])).hexdigest()[:8])";
    let python = std::env::var("RUTTER_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output = Command::new(python).args(["-c", program, name, public]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn entries_are_printed() {
    let fixture = StoreFixture::new();
    let text = seen(
        &fixture,
        &[
            &["journal", "show", "exec_2-order"],
            &["journal", "show", "exec_4-cheap", "--payloads"],
            &["journal", "show", "ledger"],
            &["journal", "show", "exec_9"],
            &["journal", "show", "exec_9", "--json"],
            &["journal", "tail", "-n", "3"],
            &["journal", "tail", "--kind", "attempt_failed", "--kind", "deviation_found"],
            &["journal", "tail", "--kind", "attempt_failled"],
            &["journal", "tail", "--actor", "agent pilot", "-n", "2", "--payloads"],
            &["journal", "tail", "--actor", "nobody"],
            &["journal", "tail", "-n", "0"],
        ],
    );
    insta::assert_snapshot!("entries", text);
    let entries = done(fixture.rutter(&["journal", "show", "exec_2-order", "--json"])).stdout;
    assert_eq!(entries.lines().count(), 19);
    let carried = done(fixture.rutter(&["journal", "show", "exec_2-order", "--json", "--payloads"])).stdout;
    let first: serde_json::Value = serde_json::from_str(carried.lines().next().unwrap()).unwrap();
    assert_eq!(first["event"]["inputs"]["amount"], 129);
    let first: serde_json::Value = serde_json::from_str(entries.lines().next().unwrap()).unwrap();
    assert!(first["event"]["inputs"]["bytes"].is_u64(), "{first}");
}

#[test]
fn follow_prints_later_entries_and_nothing_twice() {
    let fixture = StoreFixture::new();
    let mut following = fixture.command(&["journal", "tail", "-n", "1", "--follow", "--json"]);
    let mut following = following.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let last = next();
    let erase = ["journal", "erase", "exec_2-order", "--seq", "1", "--yes", "--reason", "asked for"];
    done(fixture.rutter(&erase));
    let new = next();
    following.kill().unwrap();
    following.wait().unwrap();
    assert_ne!(last["hash"], new["hash"]);
    assert_eq!((&new["execution_id"], &new["kind"]), (&json!("ledger"), &json!("payloads_erased")));
}

#[test]
fn erased_payloads_are_gone_and_everything_else_can_still_be_proven() {
    let fixture = StoreFixture::new();
    let key = done(fixture.rutter(&["journal", "key"])).stdout.trim().to_owned();
    let text = seen(
        &fixture,
        &[
            &["journal", "erase", "exec_2-order", "--reason", "asked for"],
            &["journal", "erase", "exec_9", "--reason", "asked for", "--yes"],
            &["journal", "erase", "exec_2-order", "--seq", "1", "--reason", "asked for", "--yes"],
            &["journal", "erase", "exec_2-order", "--reason", "asked for", "--yes", "--json"],
            &["journal", "show", "exec_2-order", "--payloads"],
            &["journal", "tail", "-n", "2"],
            &["db", "clean"],
            &["db", "clean", "--older-than", "a while"],
            &["db", "clean", "--older-than", "0s", "--status", "running"],
            &["db", "clean", "--older-than", "30d", "--yes"],
            &["db", "clean", "--older-than", "0s", "--status", "compensated", "--what", "executions", "--dry-run"],
            &["db", "clean", "--older-than", "0s", "--what", "payloads"],
            &["db", "clean", "--older-than", "0s", "--what", "payloads", "--yes"],
            &[
                "db",
                "clean",
                "--older-than",
                "0s",
                "--what",
                "executions",
                "--status",
                "compensated",
                "--yes",
                "--json",
            ],
            &["journal", "show", "exec_2-order"],
            &["journal", "verify", "--projections"],
        ],
    );
    insta::assert_snapshot!("erased", text);
    done(fixture.rutter(&["journal", "export", "--out", "left.ndjson"]));
    let is_open = |line: &&str| line.contains(r#""execution":"exec_4-cheap""#);
    let left = fixture.read("left.ndjson");
    assert!(left.lines().filter(|line| !is_open(line)).all(|line| !line.contains(r#"\"amount\""#)));
    assert!(left.lines().filter(is_open).any(|line| line.contains(r#"\"amount\""#)), "open executions stay");
    let (code, message) = python(&fixture.path("left.ndjson"), &key);
    assert_eq!((code, message.starts_with("V1: ")), (Some(0), true), "{message}");
    let verified = done(fixture.rutter(&["journal", "verify", "--export", "left.ndjson", "--key", &key]));
    assert!(verified.stdout.contains("entries that were cleaned up"), "{verified:?}");
}

/// After a restart, limits count what the journal still has.
#[test]
fn what_a_limit_of_the_policy_still_counts_is_not_cleaned() {
    let fixture = StoreFixture::new();
    let cleaned = |effect: &str, what: &str| {
        fixture.write("rutter.toml", &format!("[[policy]]\ntools = [\"a.*\"]\n{effect}\n"));
        let words = ["db", "clean", "--older-than", "0s", "--what", what, "--dry-run", "--json"];
        let answer: Value = serde_json::from_str(&done(fixture.rutter(&words)).stdout).unwrap();
        let removed = &answer["removed"][0];
        (removed["executions"].as_u64().unwrap(), removed["older_than_ms"].as_u64().unwrap())
    };
    for what in ["payloads", "executions"] {
        let (executions, age) = cleaned("deny = \"no\"", what);
        assert!(executions > 0 && age == 0, "{executions} {what} older than {age} ms");
        assert_eq!(cleaned("limit = { calls = 5, per = \"1h\" }", what), (0, 3_600_000), "{what}");
    }
}

#[test]
fn retention_settings_are_the_default_age() {
    let fixture = StoreFixture::new();
    fixture.write("rutter.toml", "[retention]\npayloads = \"0s\"\nexecutions = \"90d\"\n");
    let text = seen(&fixture, &[&["db", "clean", "--dry-run"], &["db", "clean", "--dry-run", "--what", "executions"]]);
    insta::assert_snapshot!("retention", text);
}
