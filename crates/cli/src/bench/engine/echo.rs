//! What a call of a tool behind a pipe costs beyond the pipe: a child that answers at once, asked directly and through us.

use super::{Measured, Target, median};
use crate::config::Config;
use crate::tools;
use anyhow::Context;
use rutter_core::id::ToolName;
use rutter_core::port::tools::{Return, Servers, Tools};
use rutter_core::tool::Outcome;
use rutter_engine::Clock;
use rutter_tools::config::mcp::{Child, Reach, Server};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Instant;

/// The word after which this program is the child.
pub(crate) const WORD: &str = "echo-tool";
const CALLS: usize = 2_000;

pub(super) fn measure(directory: &Path, say: &dyn Fn(&str)) -> anyhow::Result<Vec<Measured>> {
    say(&format!("a tool behind a pipe, {CALLS} calls"));
    let raw = bare()?;
    let ours = crate::helm::on_runtime(through_us(directory))?;
    let ratio = Some(((ours - raw) * 1_000.0, "ms beyond the pipe", Target::AtMost(1.0)));
    Ok(vec![
        Measured { what: "the pipe alone, median".into(), value: raw * 1_000.0, unit: "ms", ratio: None },
        Measured { what: "MCP call, median".into(), value: ours * 1_000.0, unit: "ms", ratio },
    ])
}

/// Seconds for one line there and back.
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
    let child = Child {
        command: std::env::current_exe()?.display().to_string(),
        args: vec![WORD.to_owned()],
        ..Child::default()
    };
    let mut config = Config::scratch(directory);
    config.tools.servers.insert("bench".to_owned(), Server::new(Reach::Child(child)));
    let store = Arc::new(crate::bench::open(directory)?);
    let registry = tools::tooling(&config, store, Clock::system())?.registry;
    registry.catalog(Servers::All).await;
    let tool = ToolName::new("bench.echo");
    let mut took = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let began = Instant::now();
        match registry.call_once(&tool, json!({ "n": 1 })).await {
            Return::Outcome(Outcome::Done { .. }) => took.push(began.elapsed().as_secs_f64()),
            other => anyhow::bail!("the tool did not answer: {other:?}"),
        }
    }
    registry.close().await;
    Ok(median(took))
}

/// A server that gives back what it gets.
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
