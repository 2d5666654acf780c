//! Timers fire once, in time or late, whatever happens in between.

use super::bench::{Bench, START, not_done, send};
use super::receiver::Receiver;
use rutter_core::id::TenantId;
use rutter_core::port::register::{Register, RegisterChange, RegisterKind, RegisterWrite};
use rutter_core::time::Timestamp;
use rutter_core::tool::FailureCategory;
use rutter_tools::builtin::BuiltinServers;
use rutter_tools::config::NotificationChannel;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use tokio_util::sync::CancellationToken;

/// Set for a process of this test that is to be killed; the value is its directory.
const VICTIM: &str = "RUTTER_TEST_TIMER_VICTIM";

/// Lets the timers run until something is true.
async fn run_until(bench: &Bench, builtins: &BuiltinServers, what: &str, is_true: impl FnMut() -> bool) {
    let shutdown = CancellationToken::new();
    tokio::join!(builtins.run_timers(shutdown.clone()), async {
        bench.eventually(what, is_true).await;
        shutdown.cancel();
    });
}

/// Lets the timers run for so long that whatever is due has fired: until one that is set for it has, and then another,
/// because what is due at the same time fires at once, in no order.
async fn run_through(bench: &Bench, builtins: &BuiltinServers) {
    let shutdown = CancellationToken::new();
    tokio::join!(builtins.run_timers(shutdown.clone()), async {
        for _ in 0..2 {
            let marker = format!("marker {}", bench.notifications().len());
            let after = json!({ "name": marker, "message": "now", "after": "0s" });
            bench.done(builtins, "timer.set", &marker, after).await;
            let fired = || bench.notifications().iter().any(|line| line["title"] == marker.as_str());
            bench.eventually("the marker fires", fired).await;
        }
        shutdown.cancel();
    });
}

fn titles(bench: &Bench) -> Vec<String> {
    let lines = bench.notifications().into_iter().map(|line| line["title"].as_str().unwrap().to_owned());
    lines.filter(|title| !title.starts_with("marker")).collect()
}

async fn names(bench: &Bench, builtins: &BuiltinServers) -> Vec<String> {
    let listed = bench.done(builtins, "timer.list", "", json!({})).await;
    let timers = listed["timers"].as_array().unwrap();
    timers.iter().map(|timer| timer["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_timer_fires_once_at_its_time() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    let tea = json!({ "name": "tea", "message": "it is ready", "after": "3m" });
    let answer = bench.done(&builtins, "timer.set", "k1", tea.clone()).await;
    assert_eq!(answer, json!({ "name": "tea", "at": "2026-11-16T05:33:00Z", "replaced": false }));
    let exact = json!({ "name": "exact", "message": "m", "at": "2026-11-16T06:32:00+01:00" });
    bench.done(&builtins, "timer.set", "k2", exact).await;
    assert_eq!(names(&bench, &builtins).await, ["exact", "tea"]);

    bench.pass(179);
    run_through(&bench, &builtins).await;
    assert_eq!(titles(&bench), ["exact"]);
    bench.pass(1);
    run_through(&bench, &builtins).await;
    assert_eq!(titles(&bench), ["exact", "tea"]);
    let lines = bench.notifications();
    let line = lines.iter().find(|line| line["title"] == "tea").unwrap();
    assert_eq!((&line["message"], &line["due_at"]), (&json!("it is ready"), &json!("2026-11-16T05:33:00Z")));
    assert_eq!(line.get("late"), None);

    assert_eq!(bench.done(&builtins, "timer.set", "k1", tea).await, answer, "the same key, the same answer");
    bench.pass(1_000);
    run_through(&bench, &builtins).await;
    assert_eq!(titles(&bench), ["exact", "tea"], "and no second timer");
}

#[tokio::test]
async fn a_timer_set_while_another_is_awaited_is_not_slept_through() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    bench.done(&builtins, "timer.set", "k1", json!({ "name": "far", "message": "m", "after": "9h" })).await;
    let shutdown = CancellationToken::new();
    tokio::join!(builtins.run_timers(shutdown.clone()), async {
        bench.done(&builtins, "timer.set", "k2", json!({ "name": "near", "message": "m", "after": "0s" })).await;
        bench.eventually("it fires", || titles(&bench) == ["near"]).await;
        shutdown.cancel();
    });
}

#[tokio::test]
async fn a_timer_due_while_no_process_ran_fires_late_and_once() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    bench.done(&builtins, "timer.set", "k1", json!({ "name": "tea", "message": "m", "after": "3m" })).await;
    drop(builtins);
    bench.pass(3_600);
    let builtins = bench.open().await;
    run_until(&bench, &builtins, "it fires", || titles(&bench).len() == 1).await;
    assert_eq!(bench.notifications()[0]["late"], true);
    drop(builtins);
    let builtins = bench.open().await;
    run_through(&bench, &builtins).await;
    assert_eq!(titles(&bench), ["tea"]);
    assert_eq!(names(&bench, &builtins).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_kill_between_delivering_and_recording_it_delivers_nothing_twice() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    bench.done(&builtins, "timer.set", "k1", json!({ "name": "tea", "message": "m", "after": "0s" })).await;
    let timer = bench.notes(RegisterKind::Timer).remove(0);
    run_until(&bench, &builtins, "it fires", || titles(&bench).len() == 1).await;
    assert_eq!(bench.notes(RegisterKind::Timer), []);
    drop(builtins);
    let builtins = bench.open().await;
    let put_back = vec![RegisterChange::put(RegisterKind::Timer, &timer.id, (*timer.value).clone())];
    let tenant = TenantId::new("tenant");
    let changes = RegisterWrite { tenant, at: Timestamp(START), changes: put_back, record: None };
    bench.register().write(changes).await.unwrap();
    assert_eq!(names(&bench, &builtins).await, ["tea"], "as if it had never been removed");
    run_through(&bench, &builtins).await;
    assert_eq!(titles(&bench), ["tea"]);
    assert_eq!(names(&bench, &builtins).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_timer_is_replaced_by_name_and_cancelled_once() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    let set = |message: &str| json!({ "name": "tea", "message": message, "after": "3m" });
    bench.done(&builtins, "timer.set", "k1", set("old")).await;
    assert_eq!(bench.done(&builtins, "timer.set", "k2", set("new")).await["replaced"], true);
    bench.done(&builtins, "timer.set", "k1", set("old")).await;
    let listed = bench.done(&builtins, "timer.list", "", json!({})).await;
    assert_eq!(listed["timers"][0]["message"], "new", "a repeated call changes nothing any more");

    let cancel = json!({ "name": "tea" });
    assert_eq!(bench.done(&builtins, "timer.cancel", "k3", cancel.clone()).await["cancelled"], true);
    assert_eq!(bench.done(&builtins, "timer.cancel", "k4", cancel.clone()).await["cancelled"], false);
    bench.done(&builtins, "timer.set", "k5", set("again")).await;
    drop(builtins);
    let builtins = bench.open().await;
    assert_eq!(bench.done(&builtins, "timer.cancel", "k3", cancel.clone()).await["cancelled"], true);
    assert_eq!(bench.done(&builtins, "timer.cancel", "k4", cancel).await["cancelled"], false);
    assert_eq!(names(&bench, &builtins).await, ["tea"], "calls of earlier keys left the new one alone");
}

#[tokio::test]
async fn a_channel_that_cannot_be_reached_is_tried_again_and_the_message_not_lost() {
    let mut bench = Bench::new();
    let receiver = Receiver::new(&[500, 200]).await;
    let webhook = |url: &str| NotificationChannel::Webhook { url: url.to_owned(), allow: Vec::new() };
    bench.channels.insert("ops".to_owned(), webhook(&receiver.url));
    bench.channels.insert("gone".to_owned(), webhook("http://127.0.0.1:1/"));
    let builtins = bench.open().await;
    let set = |channel: &str| json!({ "name": channel, "message": "m", "after": "0s", "channel": channel });
    bench.done(&builtins, "timer.set", "k1", set("ops")).await;
    bench.done(&builtins, "timer.set", "k2", set("gone")).await;
    let shutdown = CancellationToken::new();
    tokio::join!(builtins.run_timers(shutdown.clone()), async {
        for _ in 0..8 {
            run_marker(&bench, &builtins).await;
            bench.pass(70);
        }
        shutdown.cancel();
    });
    assert_eq!(receiver.count(), 2);
    let heard = receiver.heard.lock().unwrap();
    assert_eq!(heard[0].0, heard[1].0, "both tries carry one id");
    assert_eq!(heard[0].1["title"], "ops");
    let lines = bench.notifications();
    let given_up: Vec<&Value> = lines.iter().filter(|line| line["title"] == "gone").collect();
    assert_eq!(given_up.len(), 1);
    assert_eq!(given_up[0]["channel"], "log");
    assert!(given_up[0]["message"].as_str().unwrap().contains("could not be reached"));
}

/// Sets a timer that is due and waits until it has fired; another task runs the timers.
async fn run_marker(bench: &Bench, builtins: &BuiltinServers) {
    let marker = format!("marker {}", bench.notifications().len());
    let after = json!({ "name": marker, "message": "now", "after": "0s" });
    bench.done(builtins, "timer.set", &marker, after).await;
    let fired = || bench.notifications().iter().any(|line| line["title"] == marker.as_str());
    bench.eventually("the marker fires", fired).await;
}

#[tokio::test]
async fn invalid_parameters_are_refused() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    for (parameters, word) in [
        (json!({ "name": "a", "message": "m" }), "either"),
        (json!({ "name": "a", "message": "m", "at": "2026-11-16T05:30:00Z", "after": "1s" }), "either"),
        (json!({ "name": "a", "message": "m", "at": "tomorrow" }), "tomorrow"),
        (json!({ "name": "a", "message": "m", "after": "soon" }), "soon"),
        (json!({ "name": "", "message": "m", "after": "1s" }), "name is empty"),
        (json!({ "name": "a", "message": "m".repeat(4_001), "after": "1s" }), "4001"),
        (json!({ "name": "a", "message": "m", "after": "1s", "channel": "nowhere" }), "there are log"),
        (json!({ "name": "a", "message": "m", "after": "1s", "loud": true }), "loud"),
    ] {
        let (category, message) = not_done(bench.call(&builtins, "timer.set", "k", parameters).await);
        assert!(category == FailureCategory::InvalidInput && message.contains(word), "{message}");
    }
    assert_eq!(not_done(bench.call(&builtins, "timer.stop", "k", json!({})).await).0, FailureCategory::NotFound);
}

#[tokio::test]
async fn the_number_of_timers_is_limited_but_replacing_one_is_possible() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    let set = |name: &str| json!({ "name": name, "message": "m", "after": "1h" });
    bench.done(&builtins, "timer.set", "k1", set("tea")).await;
    for thousand in 0..10 {
        let count = if thousand == 0 { 999 } else { 1_000 };
        let put = |at| RegisterChange::put(RegisterKind::Timer, &format!("{thousand}.{at}"), json!(0));
        let (tenant, changes) = (TenantId::new("tenant"), (0..count).map(put).collect());
        let changes = RegisterWrite { tenant, at: Timestamp(START), changes, record: None };
        bench.register().write(changes).await.unwrap();
    }
    let (category, message) = not_done(bench.call(&builtins, "timer.set", "k2", set("coffee")).await);
    assert!(category == FailureCategory::Conflict && message.contains("10000 timers"), "{message}");
    assert_eq!(bench.done(&builtins, "timer.set", "k3", set("tea")).await["replaced"], true);
    bench.done(&builtins, "timer.cancel", "k4", json!({ "name": "tea" })).await;
    bench.done(&builtins, "timer.set", "k5", set("coffee")).await;
}

#[tokio::test]
async fn a_timer_that_cannot_be_read_blocks_no_other() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    let (tenant, changes) = (TenantId::new("tenant"), vec![RegisterChange::put(RegisterKind::Timer, "0", json!(0))]);
    let changes = RegisterWrite { tenant, at: Timestamp(START), changes, record: None };
    bench.register().write(changes).await.unwrap();
    run_through(&bench, &builtins).await;
    assert_eq!(bench.notes(RegisterKind::Timer).len(), 1);
}

#[tokio::test]
async fn answers_and_notifications_are_forgotten_after_a_month() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    let message = json!({ "channel": "log", "title": "t", "message": "m" });
    bench.done(&builtins, "timer.cancel", "k1", json!({ "name": "tea" })).await;
    bench.done(&builtins, "notify.send", "k2", message.clone()).await;
    bench.pass(29 * 86_400);
    bench.done(&builtins, "notify.send", "k3", message).await;
    run_through(&bench, &builtins).await;
    assert_eq!((bench.notes(RegisterKind::ToolReply).len(), bench.notifications().len()), (3, 4));
    bench.pass(2 * 86_400);
    let left = || (bench.notes(RegisterKind::ToolReply).len(), bench.notifications().len());
    run_until(&bench, &builtins, "they are forgotten", || left() == (2, 3)).await;
}

#[tokio::test]
async fn a_timer_that_cannot_be_removed_is_not_delivered_again() {
    let mut bench = Bench::new();
    let receiver = Receiver::new(&[200]).await;
    let webhook = NotificationChannel::Webhook { url: receiver.url.clone(), allow: Vec::new() };
    bench.channels.insert("ops".to_owned(), webhook);
    let builtins = bench.open().await;
    let set = json!({ "name": "tea", "message": "m", "after": "0s", "channel": "ops" });
    bench.done(&builtins, "timer.set", "k1", set).await;
    // The notification can still be stored.
    *bench.register().writes_left.lock().unwrap() = Some(1);
    run_until(&bench, &builtins, "it is delivered", || bench.notifications().len() == 1).await;
    assert_eq!(names(&bench, &builtins).await, ["tea"]);
    *bench.register().writes_left.lock().unwrap() = None;
    run_through(&bench, &builtins).await;
    assert_eq!(names(&bench, &builtins).await, Vec::<String>::new());
    assert_eq!(receiver.count(), 1);
}

#[tokio::test]
async fn tenants_do_not_see_each_others_timers() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    let mut request = bench.request("set", "k1", json!({ "name": "tea", "message": "m", "after": "1h" }));
    request.id.identity.tenant = TenantId::new("other");
    send(&builtins, "timer", request).await;
    assert_eq!(names(&bench, &builtins).await, Vec::<String>::new());
    assert_eq!(bench.done(&builtins, "timer.cancel", "k2", json!({ "name": "tea" })).await["cancelled"], false);
}

/// Not a test of its own unless asked: the process that [`nothing_acknowledged_is_lost_at_a_kill`] kills.
#[tokio::test]
async fn victim() {
    let Ok(folder) = std::env::var(VICTIM) else { return };
    let bench = Bench::at(Path::new(&folder));
    let builtins = bench.open().await;
    for number in 0.. {
        let name = format!("timer {number}");
        let set = json!({ "name": name, "message": "m", "after": "1h" });
        bench.done(&builtins, "timer.set", &format!("t{number}"), set).await;
        bench.done(&builtins, "memory.store", &format!("m{number}"), json!({ "text": name })).await;
        println!("\nkept {number}");
    }
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_at_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut retained = 0;
    for wanted in [20, 45, 70] {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["builtin::timer::victim", "--exact", "--nocapture"])
            .env(VICTIM, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(victim.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut numbers = lines.filter_map(|line| line.strip_prefix("kept ")?.parse::<usize>().ok());
        for number in numbers.by_ref() {
            retained = retained.max(number + 1);
            if number >= wanted {
                break;
            }
        }
        victim.kill().unwrap();
        victim.wait().unwrap();
        // What it acknowledged between the last line that was read and its end.
        retained = numbers.map(|number| number + 1).fold(retained, usize::max);
        let bench = Bench::at(folder.path());
        let builtins = bench.open().await;
        let names = names(&bench, &builtins).await;
        assert!(names.len() >= retained && names.len() <= retained + 2, "{} of {retained}", names.len());
        for number in 0..retained {
            assert!(names.contains(&format!("timer {number}")));
        }
        let recent = bench.done(&builtins, "memory.recent", "", json!({ "limit": 100 })).await;
        let stored = recent["memories"].as_array().unwrap().len();
        assert!(
            (retained..=retained + 2).contains(&stored),
            "{stored} of {retained}; each once, however often it was repeated"
        );
    }
}
