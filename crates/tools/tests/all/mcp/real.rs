//! Real servers, as their authors publish them: what they did is checked on the disk.

use crate::mcp::fixture::*;
use rutter_core::tool::FailureCategory;
use rutter_tools::config::mcp::{McpChildConfig, McpHttpConfig, McpServerConfig, McpTransport};
use rutter_tools::connector::Connector;
use rutter_tools::mcp::{McpLimits, McpServer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Where the servers are; they are installed first when they are not there yet.
fn installed() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let output = Command::new(root.join("scripts/install-mcp-servers")).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "run scripts/install-mcp-servers with npm and python3 at hand: {message}");
        root.join("target/mcp-servers")
    })
}

fn node(name: &str, args: &[&str], env: &[(&str, &str)]) -> McpServer {
    start(installed().join("node_modules/.bin").join(name), args, env)
}

fn python(name: &str, args: &[&str]) -> McpServer {
    start(installed().join("venv/bin").join(name), args, &[])
}

fn start(program: PathBuf, args: &[&str], env: &[(&str, &str)]) -> McpServer {
    let child = McpChildConfig {
        command: program.to_str().unwrap().to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env: env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
        cwd: None,
    };
    // A machine that builds something else meanwhile takes its time to start an interpreter.
    let patience = McpLimits { start: Duration::from_secs(120), ..McpLimits::default() };
    let server = McpServerConfig::new(McpTransport::Child(child));
    McpServer::with_limits("real", &server, launcher(Arc::new(Pids::default())), patience)
}

async fn call(server: &McpServer, tool: &str, parameters: Value) -> Value {
    let (mut request, ..) = request(tool, parameters);
    request.timeout = Duration::from_secs(150);
    done(server.call(request).await)
}

async fn names(server: &McpServer) -> Vec<String> {
    let tools = server.list().await.unwrap();
    assert!(server.left_out().is_empty(), "{:?}", server.left_out());
    tools.into_iter().map(|tool| tool.name).collect()
}

#[tokio::test]
async fn files_are_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let server = node("mcp-server-filesystem", &[root.to_str().unwrap()], &[]);
    assert!(names(&server).await.len() >= 10);
    let path = root.join("log.txt");
    call(&server, "write_file", json!({"path": path, "content": "sailed at dawn"})).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "sailed at dawn");
    let read = call(&server, "read_text_file", json!({"path": path})).await;
    assert!(read.to_string().contains("sailed at dawn"), "{read}");

    let (outside, ..) = request("write_file", json!({"path": "/etc/rutter-was-here", "content": "x"}));
    not_done(server.call(outside).await, FailureCategory::ToolError);
    assert!(!Path::new("/etc/rutter-was-here").exists());
    server.close().await;
}

#[tokio::test]
async fn a_repository_is_looked_at_and_committed_to() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let git = |args: &[&str]| {
        let output = Command::new("git").current_dir(&root).args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "--quiet"]);
    git(&["config", "user.name", "Tester"]);
    git(&["config", "user.email", "tester@example.org"]);
    std::fs::write(root.join("chart.txt"), "north\n").unwrap();
    let server = python("mcp-server-git", &["--repository", root.to_str().unwrap()]);
    assert!(names(&server).await.contains(&"git_commit".to_owned()));
    let status = call(&server, "git_status", json!({"repo_path": root})).await;
    assert!(status.to_string().contains("chart.txt"), "{status}");
    call(&server, "git_add", json!({"repo_path": root, "files": ["chart.txt"]})).await;
    call(&server, "git_commit", json!({"repo_path": root, "message": "add the chart"})).await;
    assert_eq!(git(&["log", "--format=%s"]).trim(), "add the chart");
    server.close().await;
}

#[tokio::test]
async fn memories_are_stored_and_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memory.jsonl");
    let server = node("mcp-server-memory", &[], &[("MEMORY_FILE_PATH", file.to_str().unwrap())]);
    let entity = json!({"name": "Rutter", "entityType": "book", "observations": ["has a red cover"]});
    call(&server, "create_entities", json!({"entities": [entity]})).await;
    assert!(std::fs::read_to_string(&file).unwrap().contains("has a red cover"));
    let found = call(&server, "search_nodes", json!({"query": "red cover"})).await;
    assert_eq!(found["entities"][0]["name"], "Rutter", "{found}");
    server.close().await;
}

#[tokio::test]
async fn a_time_is_converted() {
    let server = python("mcp-server-time", &["--local-timezone", "UTC"]);
    let parameters = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let converted = call(&server, "convert_time", parameters).await;
    assert!(converted.to_string().contains("T21:00:00+09:00"), "{converted}");
    server.close().await;
}

#[tokio::test]
async fn thoughts_are_counted() {
    let server = node("mcp-server-sequential-thinking", &[], &[]);
    let thought =
        json!({"thought": "weigh anchor", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1});
    let counted = call(&server, "sequentialthinking", thought).await;
    assert_eq!(counted["thoughtHistoryLength"], 1, "{counted}");
    server.close().await;
}

#[tokio::test]
async fn a_page_is_fetched() {
    let (address, _server) = serve_page();
    let server = python("mcp-server-fetch", &["--ignore-robots-txt", "--allow-private-ips"]);
    let page = call(&server, "fetch", json!({"url": format!("http://{address}/"), "raw": true})).await;
    assert!(page.to_string().contains("Fair winds"), "{page}");
    server.close().await;
}

#[tokio::test]
async fn everything_is_called_over_pipes() {
    let server = node("mcp-server-everything", &["stdio"], &[]);
    everything(&server).await;
    server.close().await;
}

#[tokio::test]
async fn everything_is_called_over_http() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let program = installed().join("node_modules/.bin/mcp-server-everything");
    let child = Command::new(program).arg("streamableHttp").env("PORT", port.to_string()).spawn().unwrap();
    let _child = Killed(child);
    let address = format!("127.0.0.1:{port}");
    until(|| std::net::TcpStream::connect(&address).is_ok()).await;
    let server = over_http(&format!("http://{address}/mcp"), patience());
    everything(&server).await;
    server.close().await;
}

#[tokio::test]
async fn an_address_where_nothing_listens_is_not_done() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = over_http(&format!("http://127.0.0.1:{port}/mcp"), patience());
    let (request, ..) = request("echo", json!({}));
    let failure = not_done(server.call(request).await, FailureCategory::Unavailable);
    assert!(failure.message.contains("nothing answers at its address"), "{failure}");
    assert!(failure.retry_after.is_some());
}

async fn everything(server: &McpServer) {
    let names = names(server).await;
    assert!(names.contains(&"echo".to_owned()), "{names:?}");
    let echo = call(server, "echo", json!({"message": "ahoy"})).await;
    assert_eq!(text_of(&echo), "Echo: ahoy");

    let long = "trigger-long-running-operation".to_owned();
    assert!(names.contains(&long), "{names:?}");
    let (mut slow, ear, _) = request(&long, json!({"duration": 1, "steps": 4}));
    slow.timeout = Duration::from_secs(60);
    done(server.call(slow).await);
    until(|| ear.progress.lock().unwrap().len() >= 4).await;
    let last = ear.progress.lock().unwrap().last().cloned().unwrap();
    assert_eq!(last.total, Some(4.0));

    // Cancelled in the middle; the connection stays usable.
    let (endless, ear, cancel) = request(&long, json!({"duration": 100, "steps": 1000}));
    let (outcome, ()) = tokio::join!(server.call(endless), async {
        until(|| !ear.progress.lock().unwrap().is_empty()).await;
        cancel.cancel();
    });
    maybe(outcome, FailureCategory::Cancelled);
    let echo = call(server, "echo", json!({"message": "still here"})).await;
    assert_eq!(text_of(&echo), "Echo: still here");

    let (unknown, ..) = request("no-such-tool", json!({}));
    assert!(matches!(server.call(unknown).await, rutter_core::tool::CallOutcome::NotDone(_)));
}

fn over_http(url: &str, patience: McpLimits) -> McpServer {
    let http = McpHttpConfig { url: url.parse().unwrap(), headers: BTreeMap::new() };
    let server = McpServerConfig::new(McpTransport::Http(http));
    McpServer::with_limits("far", &server, launcher(Arc::new(Pids::default())), patience)
}

struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Serves one page until the test ends.
fn serve_page() -> (std::net::SocketAddr, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap().take(64 * 1024)).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let page = "<html><body><main><h1>Log</h1><p>Fair winds and following seas.</p></main></body></html>";
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}", page.len());
            _ = write!(stream, "{head}\r\nConnection: close\r\n\r\n{page}");
        }
    });
    (address, serving)
}
