//! What a confined program can and cannot do.

use super::fixture::ChildFixture;
use rutter_tools::child::{ResourceLimits, SandboxPermissions, SandboxSupport, confine};
use std::io::Write;
use std::net::TcpListener;

#[tokio::test]
async fn files_outside_its_directories_cannot_be_read_or_written() {
    let fixture = ChildFixture::new();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join(".ssh");
    std::fs::create_dir(&secret).unwrap();
    std::fs::write(secret.join("id"), "private key").unwrap();
    let key = secret.join("id").display().to_string();
    std::os::unix::fs::symlink(&key, fixture.cwd().join("link")).unwrap();
    let script = format!(
        "cat {key}; cat link; cat ../../../../../../../../../{key}; ls {}; echo x > {key}; rm {key}; \
         ln {key} hard; echo own > mine; cat mine",
        secret.display()
    );
    let (_, out, err) = fixture.output(fixture.start(&script)).await;
    assert_eq!(out, "own\n", "{err}");
    assert!(err.matches("ermission denied").count() >= 6, "{err}");
    assert_eq!(std::fs::read_to_string(secret.join("id")).unwrap(), "private key");
}

#[tokio::test]
async fn declared_files_can_be_read_and_not_written() {
    let fixture = ChildFixture::new();
    let shared = tempfile::tempdir().unwrap();
    let file = shared.path().join("file");
    std::fs::write(&file, "shared").unwrap();
    let mut start = fixture.start(&format!("cat {0}; echo x > {0} || echo refused", file.display()));
    start.reach.as_mut().unwrap().read.push(shared.path().to_owned());
    let (_, out, _) = fixture.output(start).await;
    assert_eq!(out, "sharedrefused\n");
}

#[tokio::test]
async fn the_environment_of_its_parent_stays_unknown() {
    let fixture = ChildFixture::new();
    let parent = std::process::id();
    let script = format!("env; cat /proc/{parent}/environ /proc/$PPID/environ /proc/1/environ");
    let (_, out, err) = fixture.output(fixture.start(&script)).await;
    let names: Vec<&str> = out.lines().filter_map(|line| line.split('=').next()).collect();
    let expected = ["PATH", "PWD", "RUTTER_CHILD", "_", "OLDPWD", "SHLVL"];
    assert!(names.iter().all(|name| expected.contains(name)), "{names:?}");
    assert_eq!(err.matches("ermission denied").count(), 3, "{err}");
}

#[tokio::test]
async fn it_cannot_signal_its_parent() {
    let fixture = ChildFixture::new();
    let (_, out, err) = fixture.output(fixture.start("kill -0 $PPID && echo can")).await;
    assert_eq!(out, "", "{err}");
    assert!(err.contains("not permitted"), "{err}");
}

#[tokio::test]
async fn the_network_is_open_to_those_that_may_use_it_only() {
    assert_eq!(confine::sandbox(), SandboxSupport::FilesAndNetwork);
    let fixture = ChildFixture::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let greet = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"hello").unwrap());
    let connect = format!(
        "import socket\ntry:\n  print(socket.create_connection(('127.0.0.1',{port})).recv(9))\n\
         except PermissionError: print('refused')"
    );
    let bind = "import socket\ntry: socket.socket().bind(('127.0.0.1',0))\nexcept PermissionError: print('no')";
    let python = |script: &str, network: bool| {
        let mut start = fixture.start("");
        start.program = "/usr/bin/python3".into();
        start.arguments = vec!["-c".into(), script.into()];
        start.reach = Some(SandboxPermissions { network, ..start.reach.unwrap() });
        start
    };
    assert_eq!(fixture.output(python(&connect, false)).await.1, "refused\n");
    assert_eq!(fixture.output(python(bind, false)).await.1, "no\n");
    assert_eq!(fixture.output(python(&connect, true)).await.1, "b'hello'\n");
    greet.join().unwrap();
}

#[tokio::test]
async fn limits_are_those_it_was_given() {
    let fixture = ChildFixture::new();
    // A forked grep would have a directory of its own under /proc, which it may not read; so it takes the shell's place.
    let script = "ulimit -v; ulimit -t; ulimit -n; ulimit -c; exec grep NoNewPrivs /proc/self/status";
    let mut start = fixture.start(script);
    start.limits = ResourceLimits { memory_mib: Some(100), cpu_seconds: Some(7), processes: Some(3), files: Some(20) };
    let (_, out, err) = fixture.output(start).await;
    assert_eq!(out, "102400\n7\n20\n0\nNoNewPrivs:\t1\n", "{err}");
}

#[tokio::test]
async fn a_program_that_is_not_there_never_ran() {
    let fixture = ChildFixture::new();
    for (program, word) in [("/usr/bin/no-such-program", "No such file"), ("/etc/passwd", "denied")] {
        let mut start = fixture.start("");
        start.program = program.into();
        let mut child = fixture.children.start(start).await.unwrap();
        let mut stderr = String::new();
        let mut pipe = child.stderr.take().unwrap();
        tokio::io::AsyncReadExt::read_to_string(&mut pipe, &mut stderr).await.unwrap();
        let ended = child.ended().await;
        let why = child.never_ran(ended, stderr.as_bytes()).unwrap();
        assert!(why.contains(word), "{why}");
    }
    assert_eq!(fixture.registered(), 0);
}

#[tokio::test]
async fn a_program_cannot_claim_that_it_never_ran() {
    let fixture = ChildFixture::new();
    let script = "echo 'rutter: the program was not started : no' >&2; exit 125";
    let mut child = fixture.children.start(fixture.start(script)).await.unwrap();
    let mut stderr = String::new();
    let mut pipe = child.stderr.take().unwrap();
    tokio::io::AsyncReadExt::read_to_string(&mut pipe, &mut stderr).await.unwrap();
    let ended = child.ended().await;
    assert_eq!(ended.0.unwrap().code(), Some(125));
    assert_eq!(child.never_ran(ended, stderr.as_bytes()), None);
}
