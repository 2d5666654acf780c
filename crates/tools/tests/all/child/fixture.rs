//! Starts real programs for the tests.

pub use crate::fixture::{children, is_alive as lives, launcher};
use rutter_tools::child::{ChildProcess, ChildSpawner, ProgramExit, ProgramStart, ResourceLimits, SandboxPermissions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;

pub struct ChildFixture {
    pub children: ChildSpawner,
    pub folder: tempfile::TempDir,
}

impl ChildFixture {
    pub fn new() -> ChildFixture {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("cwd")).unwrap();
        ChildFixture { children: children(folder.path()), folder }
    }

    pub fn cwd(&self) -> PathBuf {
        self.folder.path().join("cwd")
    }

    pub fn start(&self, script: &str) -> ProgramStart {
        let reach = SandboxPermissions { read: Vec::new(), write: vec![self.cwd()], network: false };
        let environment = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
        ProgramStart {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment,
            cwd: self.cwd(),
            about: "a test".to_owned(),
            limits: ResourceLimits::default(),
            reach: Some(reach),
        }
    }

    pub async fn output(&self, start: ProgramStart) -> (ProgramExit, String, String) {
        let child = self.children.start(start).await.unwrap();
        finish(child).await
    }

    pub fn registered(&self) -> usize {
        registered(&self.folder.path().join("roster"))
    }
}

pub fn registered(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder).unwrap();
    files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|end| end == "json")).count()
}

pub async fn finish(mut child: ChildProcess) -> (ProgramExit, String, String) {
    drop(child.stdin.take());
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (read_out, read_err, ended) =
        tokio::join!(stdout.read_to_end(&mut out), stderr.read_to_end(&mut err), child.ended());
    read_out.unwrap();
    read_err.unwrap();
    (ended, String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned())
}

/// Waits until a condition holds, and fails with `what` when it does not.
pub fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_true() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
