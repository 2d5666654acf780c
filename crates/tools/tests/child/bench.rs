//! Where the tests start real programs from.

use rutter_tools::child::{Child, Children, Ended, Launcher, Limits, Reach, Roster, Start};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;

/// The example `launch`, which is built with the tests.
pub fn launcher() -> Launcher {
    let own = std::env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("examples/launch");
    assert!(program.exists(), "build the launcher first: cargo build -p rutter-tools --example launch");
    Launcher { program, arguments: Vec::new() }
}

pub struct Bench {
    pub children: Children,
    pub folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("cwd")).unwrap();
        let (roster, survivors) = Roster::open(&folder.path().join("roster")).unwrap();
        assert_eq!(survivors, 0);
        Bench { children: Children::new(launcher(), Arc::new(roster)), folder }
    }

    pub fn cwd(&self) -> PathBuf {
        self.folder.path().join("cwd")
    }

    pub fn start(&self, script: &str) -> Start {
        let reach = Reach { read: Vec::new(), write: vec![self.cwd()], network: false };
        let environment = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
        Start {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment,
            cwd: self.cwd(),
            about: "a test".to_owned(),
            limits: Limits::default(),
            reach: Some(reach),
        }
    }

    pub async fn output(&self, start: Start) -> (Ended, String, String) {
        let child = self.children.start(start).await.unwrap();
        finish(child).await
    }

    pub fn on_roster(&self) -> usize {
        on_roster(&self.folder.path().join("roster"))
    }
}

pub fn on_roster(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder).unwrap();
    files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|end| end == "json")).count()
}

pub async fn finish(mut child: Child) -> (Ended, String, String) {
    drop(child.stdin.take());
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (read_out, read_err, ended) =
        tokio::join!(stdout.read_to_end(&mut out), stderr.read_to_end(&mut err), child.ended());
    read_out.unwrap();
    read_err.unwrap();
    (ended, String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned())
}

/// Whether a process is there and has not ended.
pub fn lives(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit_once(") ").unwrap().1.starts_with('Z')
}

/// Waits for something to come true, and says what did not.
pub fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_true() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
