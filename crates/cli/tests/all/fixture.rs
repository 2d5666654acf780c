//! Shared by the modules: the program itself, its output, waiting with a limit, and the script of the tool servers.

use std::path::Path;
use std::process::{Child, Output};
use std::thread;
use std::time::{Duration, Instant};

/// The program under test.
pub const RUTTER: &str = env!("CARGO_BIN_EXE_rutter");

/// The limit for anything that must happen.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until a condition holds, and fails with `what` if it does not.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "it did not happen within {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The output of a process that ends by itself.
#[track_caller]
pub fn ended(mut child: Child) -> Output {
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("it does not end: {}", output_text(&child.wait_with_output().unwrap()));
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

/// Standard output, then standard error.
pub fn output_text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The script of every tool server, whose effects are counted.
pub fn effects_script() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/servers/effects.py");
    path.canonicalize().unwrap().display().to_string()
}
