//! The overhead of a tool call over a pipe: a child that responds at once, called directly and through Rutter.

use super::{median, runtime};
use crate::measurement::{BenchTarget, Measurement};
use anyhow::Context;
use rutter_app::runtime::{Runtime, RuntimeOptions, ToolSource};
use rutter_core::id::ToolName;
use rutter_core::port::tools::{CallReturn, ServerSelection, ToolGateway};
use rutter_core::tool::CallOutcome;
use rutter_tools::config::mcp::{McpChildConfig, McpServerConfig, McpTransport};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// The argument that makes this program the child.
pub(crate) const WORD: &str = "echo-tool";
const CALLS: usize = 2_000;

pub(super) fn measure(directory: &Path, say: &dyn Fn(&str)) -> anyhow::Result<Vec<Measurement>> {
    say(&format!("a tool behind a pipe, {CALLS} calls"));
    let raw = bare()?;
    let ours = runtime()?.block_on(through_us(directory))?;
    let ratio = Some(((ours - raw) * 1_000.0, "ms beyond the pipe", BenchTarget::AtMost(1.0)));
    Ok(vec![
        Measurement { what: "the pipe alone, median".into(), value: raw * 1_000.0, unit: "ms", ratio: None },
        Measurement { what: "MCP call, median".into(), value: ours * 1_000.0, unit: "ms", ratio },
    ])
}

/// Seconds for one line and its response.
fn bare() -> anyhow::Result<f64> {
    let program = std::env::current_exe()?;
    let mut child = Command::new(program).arg(WORD).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (mut stdin, mut stdout) = stdin.zip(stdout.map(BufReader::new)).context("no pipes")?;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo", "arguments": { "n": 1 } } });
    let mut took = Vec::with_capacity(CALLS);
    let mut line = String::new();
    for _ in 0..CALLS {
        let began = Instant::now();
        writeln!(stdin, "{call}")?;
        line.clear();
        stdout.read_line(&mut line)?;
        took.push(began.elapsed().as_secs_f64());
    }
    drop(stdin);
    child.wait()?;
    Ok(median(took))
}

async fn through_us(directory: &Path) -> anyhow::Result<f64> {
    let child = McpChildConfig {
        command: std::env::current_exe()?.display().to_string(),
        args: vec![WORD.to_owned()],
        ..McpChildConfig::default()
    };
    let mut config = rutter_tools::config::Config::default();
    config.servers.insert("bench".to_owned(), McpServerConfig::new(McpTransport::Child(child)));
    let options = RuntimeOptions {
        tools: ToolSource::Config(Box::new(config)),
        environment: std::env::vars().collect(),
        ..RuntimeOptions::new(directory)
    };
    let runtime = Runtime::prepare(options).await?;
    let registry = runtime.tools.as_ref().context("no tools")?.registry.clone();
    registry.catalog(ServerSelection::All).await;
    let tool = ToolName::new("bench.echo");
    let mut took = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let began = Instant::now();
        match registry.call_once(&tool, None, json!({ "n": 1 })).await {
            CallReturn::Outcome(CallOutcome::Done { .. }) => took.push(began.elapsed().as_secs_f64()),
            other => anyhow::bail!("the tool did not respond: {other:?}"),
        }
    }
    runtime.close().await;
    Ok(median(took))
}

/// A server that returns what it gets.
pub(crate) fn main() -> ExitCode {
    let mut stdout = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let Ok(message) = line.map(|line| serde_json::from_str::<Value>(&line).unwrap_or_default()) else {
            break;
        };
        let Some(id) = message.get("id") else { continue };
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "echo", "version": "1" },
            }),
            Some("tools/list") => {
                json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })
            }
            Some("tools/call") => json!({
                "content": [], "structuredContent": message["params"]["arguments"], "isError": false,
            }),
            _ => {
                let error = json!({ "code": -32601, "message": "no such method" });
                if writeln!(stdout, "{}", json!({ "jsonrpc": "2.0", "id": id, "error": error })).is_err() {
                    break;
                }
                continue;
            }
        };
        if writeln!(stdout, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": result })).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}
