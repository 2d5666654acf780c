//! The log files of earlier versions are imported into the database once, even after an interruption.
//!
//! The files in `logs` were written by the version before the import existed; `timers-compacted.log` is `timers.log`
//! after that version had rewritten it.

use super::bench::{Bench, START, done, send};
use rutter_core::id::TenantId;
use rutter_core::port::register::RegisterKind;
use rutter_tools::builtin::BuiltinServers;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use tokio_util::sync::CancellationToken;

const LOGS: [&str; 4] = ["timers.log", "memories.log", "notifications.1.log", "notifications.log"];

/// A directory as the earlier version left it, a few seconds later.
fn left_behind() -> Bench {
    let bench = Bench::new();
    bench.now.store(START + 10_000, Ordering::SeqCst);
    let (logs, folder) = (logs(), bench.folder.join("builtin"));
    fs::create_dir(&folder).unwrap();
    for name in LOGS {
        fs::copy(logs.join(name), folder.join(name)).unwrap();
    }
    bench
}

fn logs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/builtin/logs")
}

async fn of_other_tenant(bench: &Bench, builtins: &BuiltinServers, name: &str, parameters: Value) -> Value {
    let (server, tool) = name.split_once('.').unwrap();
    let mut request = bench.request(tool, "", parameters);
    request.id.identity.tenant = TenantId::new("other");
    done(send(builtins, server, request).await)
}

/// Everything that was in the logs is there, each once.
async fn assert_imported(bench: &Bench, builtins: &BuiltinServers) {
    let call = |name, key, parameters| bench.done(builtins, name, key, parameters);
    let timers = call("timer.list", "", json!({})).await;
    let tea = json!([{ "name": "tea", "at": "2026-11-16T07:30:01Z", "message": "new", "channel": "log" }]);
    assert_eq!(timers["timers"], tea);
    let timers = of_other_tenant(bench, builtins, "timer.list", json!({})).await;
    assert_eq!(timers["timers"][0]["message"], "for another tenant");
    assert_eq!(timers["timers"][0]["at"], "2026-11-16T09:00:00Z");

    let set = |message: &str| json!({ "name": "tea", "message": message, "after": "9h" });
    let answer = json!({ "name": "tea", "at": "2026-11-16T06:30:00Z", "replaced": false });
    assert_eq!(call("timer.set", "k1", set("old")).await, answer);
    assert_eq!(call("timer.set", "k2", set("new")).await["replaced"], true);
    assert_eq!(call("timer.cancel", "k4", json!({ "name": "gone" })).await["cancelled"], true);
    assert_eq!(call("timer.cancel", "k5", json!({ "name": "never set" })).await["cancelled"], false);
    assert_eq!(call("timer.set", "k6", set("soon")).await["name"], "soon");
    assert_eq!((bench.notes(RegisterKind::Timer).len(), bench.notes(RegisterKind::ToolReply).len()), (1, 6));

    let found = call("memory.search", "", json!({ "query": "köln" })).await;
    let ann = &found["memories"][0];
    assert_eq!((&ann["text"], &ann["type"]), (&json!("Ann prefers tea with milk"), &json!("preference")));
    assert_eq!((&ann["importance"], &ann["tags"]), (&json!(0.9), &json!(["drink", "Köln"])));
    let stored = call("memory.store", "m2", json!({ "text": "x", "expires_after": "9h" })).await;
    assert_eq!(stored["expires_at"], "2026-11-16T07:30:02Z");
    assert_eq!(bench.notes(RegisterKind::Memory).len(), 2);
    let found = of_other_tenant(bench, builtins, "memory.search", json!({ "query": "tea" })).await;
    assert_eq!(found["memories"][0]["text"], "tea of another tenant");

    let titles: Vec<Value> = bench.notifications().iter().map(|line| line["title"].clone()).collect();
    assert_eq!(titles.len(), 3, "{titles:?}");
    let message = json!({ "channel": "log", "title": "again", "message": "again" });
    let sent = call("notify.send", "n1", message).await;
    assert_eq!(sent["delivered_at"], "2026-11-16T05:30:00Z", "it was delivered long ago");
    assert_eq!(bench.notifications().len(), 3);
}

#[tokio::test]
async fn everything_in_the_logs_is_imported_and_timers_still_fire() {
    let bench = left_behind();
    let builtins = bench.open().await;
    assert_imported(&bench, &builtins).await;
    for name in LOGS {
        let folder = bench.folder.join("builtin");
        assert!(!folder.join(name).exists());
        let imported = fs::read(folder.join(format!("{name}.imported"))).unwrap();
        assert_eq!(imported, fs::read(logs().join(name)).unwrap(), "nothing of the log is lost");
    }
    drop(builtins);
    let builtins = bench.open().await;
    assert_imported(&bench, &builtins).await;

    bench.pass(7_200);
    let shutdown = CancellationToken::new();
    tokio::join!(builtins.run_timers(shutdown.clone()), async {
        bench.eventually("it fires", || bench.notes(RegisterKind::Timer).is_empty()).await;
        shutdown.cancel();
    });
    let delivered = bench.notifications();
    assert_eq!((&delivered[3]["title"], &delivered[3]["message"]), (&json!("tea"), &json!("new")));
}

#[tokio::test]
async fn an_import_that_was_interrupted_begins_again_and_stores_nothing_twice() {
    for writes in 0.. {
        let bench = left_behind();
        let register = bench.open_store();
        *register.writes_left.lock().unwrap() = Some(writes);
        drop(register);
        let is_whole = bench.open_builtins().await.is_ok();
        let builtins = bench.open().await;
        assert_imported(&bench, &builtins).await;
        if is_whole {
            assert!(writes >= 4, "each log was one write at least");
            return;
        }
    }
}

#[tokio::test]
async fn a_log_that_was_stored_but_not_yet_renamed_is_stored_again_to_no_effect() {
    let bench = left_behind();
    drop(bench.open().await);
    for name in LOGS {
        fs::copy(logs().join(name), bench.folder.join("builtin").join(name)).unwrap();
    }
    let builtins = bench.open().await;
    assert_imported(&bench, &builtins).await;
}

#[tokio::test]
async fn a_compacted_log_is_imported_too() {
    let bench = left_behind();
    let log = bench.folder.join("builtin/timers.log");
    fs::copy(logs().join("timers-compacted.log"), log).unwrap();
    let builtins = bench.open().await;
    assert_imported(&bench, &builtins).await;
}

#[tokio::test]
async fn a_torn_last_line_was_never_acknowledged_and_is_left_out() {
    let bench = left_behind();
    for name in LOGS {
        let path = bench.folder.join("builtin").join(name);
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend_from_slice(b"{\"set\":{\"tenant\":\"ten");
        fs::write(&path, bytes).unwrap();
    }
    let builtins = bench.open().await;
    assert_imported(&bench, &builtins).await;
}

#[tokio::test]
async fn a_damaged_line_is_named_and_the_log_stays() {
    let bench = left_behind();
    let path = bench.folder.join("builtin/timers.log");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen('\n', "\nnot JSON\n", 1)).unwrap();
    bench.open_store();
    let error = bench.open_builtins().await.unwrap_err().to_string();
    assert!(error.contains("line 2 of") && error.contains("timers.log"), "{error}");
    assert!(path.exists());
}
