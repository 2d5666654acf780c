//! No child outlives us: not when it ends, not when we drop it, not when we are killed.

use super::fixture::{ChildFixture, eventually, launcher, lives, registered};
use rutter_tools::child::{ChildRegistry, ChildSpawner};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::io::AsyncBufReadExt;

/// Set for a process of this test that is to be killed; the value is its directory.
const VICTIM: &str = "RUTTER_TEST_VICTIM";

async fn first_line(child: &mut rutter_tools::child::ChildProcess) -> String {
    let mut line = String::new();
    let mut stdout = tokio::io::BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).await.unwrap();
    child.stdout = Some(stdout.into_inner());
    line.trim().to_owned()
}

#[tokio::test]
async fn a_daemon_dies_with_the_program_that_started_it() {
    let fixture = ChildFixture::new();
    let script = "sleep 1000 >/dev/null 2>&1 & echo $! > plain; \
                  setsid sh -c 'echo $$ > away; exec sleep 1000' >/dev/null 2>&1 & \
                  while ! [ -s away ]; do :; done; echo started";
    let (ended, out, err) = fixture.output(fixture.start(script)).await;
    assert_eq!((ended.0.unwrap().code(), out.as_str()), (Some(0), "started\n"), "{err}");
    for file in ["plain", "away"] {
        let pid: u32 = std::fs::read_to_string(fixture.cwd().join(file)).unwrap().trim().parse().unwrap();
        assert!(!lives(pid), "{file}");
    }
    assert_eq!(fixture.registered(), 0);
}

#[tokio::test]
async fn a_dropped_child_is_killed() {
    let fixture = ChildFixture::new();
    let mut child = fixture.children.start(fixture.start("trap '' TERM; sleep 1000 & echo $!; wait")).await.unwrap();
    let inner: u32 = first_line(&mut child).await.parse().unwrap();
    let pid = child.id();
    assert!(lives(pid) && lives(inner));
    assert_eq!(fixture.registered(), 1);
    drop(child);
    eventually("both are gone", || !lives(pid) && !lives(inner));
    eventually("the registry is empty", || fixture.registered() == 0);
}

#[test]
fn a_child_registry_has_one_owner() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _) = ChildRegistry::open(folder.path()).unwrap();
    assert!(ChildRegistry::open(folder.path()).unwrap_err().to_string().contains("in use by another process"));
    drop(first);
    ChildRegistry::open(folder.path()).unwrap();
}

#[test]
fn other_processes_with_a_reused_pid_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut stranger = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
    let (roster, _) = ChildRegistry::open(folder.path()).unwrap();
    roster.add(stranger.id()).unwrap();
    drop(roster);
    let file = folder.path().join(format!("{}.json", stranger.id()));
    let text = std::fs::read_to_string(&file).unwrap();
    let mut entry: serde_json::Value = serde_json::from_str(&text).unwrap();
    entry["started"] = (entry["started"].as_u64().unwrap() - 1).into();
    std::fs::write(&file, entry.to_string()).unwrap();
    let (roster, survivors) = ChildRegistry::open(folder.path()).unwrap();
    assert_eq!((survivors, registered(folder.path())), (0, 0));
    assert!(lives(stranger.id()));

    roster.add(stranger.id()).unwrap();
    drop(roster);
    let (_, survivors) = ChildRegistry::open(folder.path()).unwrap();
    assert_eq!(survivors, 1);
    stranger.wait().unwrap();
}

/// Not a test of its own unless asked: the process that [`a_killed_parent_leaves_nothing_behind`] kills.
#[test]
fn victim() {
    let Ok(folder) = std::env::var(VICTIM) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let (roster, _) = ChildRegistry::open(&Path::new(&folder).join("roster")).unwrap();
        let children = ChildSpawner::new(launcher(), Arc::new(roster));
        let fixture = ChildFixture::new();
        let mut start = fixture.start(
            "sleep 1000 & grouped=$!; setsid sh -c 'echo $$ > away; exec sleep 1000' & \
             while ! [ -s away ]; do :; done; echo $$ $grouped $(cat away); wait",
        );
        // Processes that the program forked are not signalled when their parent dies.
        start.cwd = Path::new(&folder).to_owned();
        start.reach.as_mut().unwrap().write = vec![folder.into()];
        let mut child = children.start(start).await.unwrap();
        println!("\npids {}", first_line(&mut child).await);
        std::future::pending::<()>().await;
    });
}

#[test]
fn a_killed_parent_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["child::survivors::victim", "--exact", "--nocapture"])
        .env(VICTIM, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.starts_with("pids ")).unwrap();
    let pids: Vec<u32> = line.split(' ').skip(1).map(|pid| pid.parse().unwrap()).collect();
    let [program, grouped, away] = pids[..] else { panic!("{line}") };
    assert!(pids.iter().all(|pid| lives(*pid)));
    victim.kill().unwrap();
    victim.wait().unwrap();

    eventually("the program dies with its parent", || !lives(program));
    assert!(lives(grouped) && lives(away), "its descendants are not bound to a parent");
    let (_, survivors) = ChildRegistry::open(&folder.path().join("roster")).unwrap();
    assert_eq!(survivors, 2);
    assert!(!lives(grouped) && !lives(away));
}
