//! What several modules need: the launcher, outcomes by kind, waiting with a limit, and whether a process is alive.

use rutter_core::port::tools::{CallReporter, PortFuture, ToolProgress};
use rutter_core::tool::Elicitation;
use rutter_core::tool::{CallOutcome, ToolFailure};
use rutter_tools::child::{ChildRegistry, ChildSpawner, LauncherProgram};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Long enough for a loaded machine, short enough to notice that something waits for ever.
pub const SOON: Duration = Duration::from_secs(30);

/// The example `launch`, which is built with the tests.
pub fn launcher() -> LauncherProgram {
    let own = std::env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("examples/launch");
    assert!(program.exists(), "build the launcher first: cargo build -p rutter-tools --example launch");
    LauncherProgram { program, arguments: Vec::new() }
}

/// Starts processes that are registered in this folder.
pub fn children(folder: &Path) -> ChildSpawner {
    let (roster, survivors) = ChildRegistry::open(&folder.join("roster")).unwrap();
    assert_eq!(survivors, 0);
    ChildSpawner::new(launcher(), Arc::new(roster))
}

/// Answers no question and remembers nothing.
pub struct SilentReporter;

impl CallReporter for SilentReporter {
    fn accepted(&self, _: String) -> PortFuture<'_, ()> {
        Box::pin(async {})
    }

    fn ask(&self, _: Elicitation) -> PortFuture<'_, Option<Value>> {
        Box::pin(async { None })
    }

    fn progress(&self, _: ToolProgress) {}

    fn late(&self, _: CallOutcome) {}
}

#[track_caller]
pub fn done(outcome: CallOutcome) -> Value {
    match outcome {
        CallOutcome::Done { result, .. } => (*result).clone(),
        other => panic!("expected done, got {other:?}"),
    }
}

#[track_caller]
pub fn not_done(outcome: CallOutcome) -> ToolFailure {
    match outcome {
        CallOutcome::NotDone(failure) => failure,
        other => panic!("expected not done, got {other:?}"),
    }
}

#[track_caller]
pub fn maybe(outcome: CallOutcome) -> ToolFailure {
    match outcome {
        CallOutcome::Maybe(failure) => failure,
        other => panic!("expected maybe, got {other:?}"),
    }
}

/// Whether a process is there and has not ended. A zombie has ended.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Waits until a condition holds, and fails with `what` when it does not.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within {SOON:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub async fn until(holds: impl FnMut() -> bool) {
    eventually("the condition holds", holds).await;
}
