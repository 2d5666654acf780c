//! The surroundings of one lane: tools that count their effects, their settings, and a server that stays.

use super::interpreter::Interpreter;
use crate::chance::SeededRandom;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How many concurrent calls each server may get; the checker counts them.
const CONCURRENCY: [(&str, u32); 3] = [("dock", 3), ("bay", 2), ("crane", 1)];
/// The kinds of the tools, for the checker.
const ONCE: [&str; 5] = ["dock.once", "dock.broken", "bay.once", "bay.undo_once", "crane.once"];
const KEYED: [&str; 5] = ["dock.keyed", "dock.undo", "bay.keyed", "bay.undo", "crane.keyed"];
/// As a secret, because a plan pins headers.
pub(super) const LIFE: &str = "RUTTER_LIFE";

const EFFECTS: &str = include_str!("../../servers/effects.py");
const FAULTS: usize = 4_000;
/// Later than the shorter of the timeouts in plans, and before a probe's "no" counts.
const LATE: &str = "late:0.85";

#[derive(Debug)]
pub(super) struct TortureWorkspace {
    pub(super) directory: PathBuf,
    /// Of the server that the agent calls, too.
    pub(super) port: String,
    server: Child,
}

impl TortureWorkspace {
    pub(super) fn set(
        directory: &Path,
        interpreter: &Interpreter,
        chance: &mut SeededRandom,
    ) -> Result<TortureWorkspace, String> {
        let answer = |error: std::io::Error| format!("{}: {error}", directory.display());
        fs::create_dir_all(directory.join("plans")).map_err(answer)?;
        fs::write(directory.join("effects.py"), EFFECTS).map_err(answer)?;
        fs::write(directory.join("world.json"), world(chance).to_string()).map_err(answer)?;
        let mut command = Command::new(&interpreter.program);
        command.args(effects(directory, "http", "bay")).arg("--port-file").arg(directory.join("port"));
        command.current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = command.spawn().map_err(answer)?;
        let mut stage = TortureWorkspace { directory: directory.to_owned(), port: String::new(), server };
        stage.port = stage.port()?;
        fs::write(directory.join("rutter.toml"), settings(directory, interpreter, &stage.port)).map_err(answer)?;
        Ok(stage)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.directory.join("effects.log")
    }

    /// The port of the server, once it listens.
    fn port(&mut self) -> Result<String, String> {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            if let Ok(port) = fs::read_to_string(self.directory.join("port")) {
                return Ok(port);
            }
            if Instant::now() > until || !matches!(self.server.try_wait(), Ok(None)) {
                return Err("the server with the effects did not start".to_owned());
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for TortureWorkspace {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The first note of a lane.
pub(super) fn heading() -> Value {
    let limits: BTreeMap<&str, u32> = CONCURRENCY.into_iter().collect();
    json!({ "limits": limits, "once": ONCE, "keyed": KEYED })
}

/// The arguments that make the script one server. It is started in the directory: a plan pins files that arguments name
/// by their full path, and the log changes with every call.
fn effects(directory: &Path, mode: &str, server: &str) -> Vec<String> {
    let script = directory.join("effects.py").display().to_string();
    let (world, log) = ("world.json", "effects.log");
    let words = ["-I", "-S", &script, mode, "--server", server, "--world", world, "--log", log];
    words.map(str::to_owned).to_vec()
}

/// The tools, and their faults: mostly there are none.
fn world(chance: &mut SeededRandom) -> Value {
    let mut tools = Map::new();
    for server in ["dock", "bay", "crane"] {
        for (tool, kind) in [
            ("once", "once"),
            ("keyed", "keyed"),
            ("read", "read"),
            ("undo", "keyed"),
            ("undo_once", "once"),
            ("broken", "once"),
        ] {
            let takes_ms = chance.below(30);
            tools.insert(format!("{server}.{tool}"), json!({ "kind": kind, "takes_ms": takes_ms }));
        }
        tools.insert(format!("{server}.find"), json!({ "kind": "find", "of": "once" }));
    }
    let hostile: [(&str, &[Value]); 8] = [
        (
            "dock.once",
            &[
                json!("fail"),
                json!("commit_then_drop"),
                json!("die_before"),
                json!(-32602),
                json!(LATE),
                json!("freeze"),
            ],
        ),
        ("dock.keyed", &[json!("commit_then_drop"), json!("die_before"), json!("answer_twice"), json!(LATE)]),
        ("dock.undo", &[json!("commit_then_drop")]),
        (
            "bay.once",
            &[json!("commit_then_drop"), json!("drop_before"), json!(503), json!("retry_after:429:0"), json!(LATE)],
        ),
        ("bay.keyed", &[json!("commit_then_drop"), json!(503)]),
        ("bay.undo", &[json!("commit_then_drop"), json!(503)]),
        ("bay.undo_once", &[json!("commit_then_drop")]),
        ("crane.once", &[json!(3), json!("commit_then_drop")]),
    ];
    let mut faults = Map::new();
    for (tool, kinds) in hostile {
        let drawn = (0..FAULTS).map(|_| if chance.percent(6) { chance.pick(kinds).clone() } else { Value::Null });
        let mut drawn: Vec<Value> = drawn.collect();
        // What a short run must have, too.
        for (fault, every) in
            [(json!(LATE), 7), (json!("freeze"), 30)].into_iter().filter(|(fault, _)| kinds.contains(fault))
        {
            let first = chance.index(every / 2);
            drawn.iter_mut().skip(first).step_by(every).for_each(|drawn| *drawn = fault.clone());
        }
        faults.insert(tool.to_owned(), drawn.into());
    }
    faults.insert("dock.broken".to_owned(), json!(["fail"]));
    json!({ "ends": true, "tools": tools, "faults": faults })
}

fn settings(directory: &Path, interpreter: &Interpreter, port: &str) -> String {
    let mut text = "dir = \"data\"\n[limits]\nbreaker_failures = 1000000\n".to_owned();
    text += &format!("[secrets]\nlife = {{ env = \"{LIFE}\" }}\n");
    let concurrency =
        |server: &str| CONCURRENCY.into_iter().find(|(name, _)| *name == server).map_or(1, |(_, limit)| limit);
    let program = json!(interpreter.program);
    let args = json!(effects(directory, "stdio", "dock"));
    text += &format!(
        "[servers.dock]\ncommand = {program}\nargs = {args}\ncwd = {}\ntrust = true\nconcurrency = {}\n",
        json!(directory),
        concurrency("dock")
    );
    for (tool, says) in [
        ("once", "safety = \"once\""),
        ("broken", "safety = \"once\""),
        ("keyed", "safety = \"once\"\nkey_parameter = \"key\""),
        ("undo", "safety = \"once\"\nkey_parameter = \"key\""),
    ] {
        let _ = writeln!(text, "[servers.dock.tools.{tool}]\n{says}");
    }
    text += &format!(
        "[http.bay]\nbase = \"http://127.0.0.1:{port}\"\nallow = [\"127.0.0.1\"]\nconcurrency = {}\n\
         headers = {{ X-Life = \"${{secret:life}}\" }}\n",
        concurrency("bay")
    );
    for (tool, says) in [
        ("once", "safety = \"once\""),
        ("undo_once", "safety = \"once\""),
        ("keyed", "idempotency_header = \"Idempotency-Key\""),
        ("undo", "idempotency_header = \"Idempotency-Key\""),
        ("read", "safety = \"read_only\""),
        ("find", "safety = \"read_only\""),
    ] {
        let _ = writeln!(text, "[http.bay.tools.{tool}]\nmethod = \"POST\"\npath = \"/{tool}\"\n{says}");
    }
    let _ = writeln!(text, "[commands.crane]\ncwd = {}\nconcurrency = {}", json!(directory), concurrency("crane"));
    for (tool, says) in [("once", "safety = \"once\""), ("keyed", "safety = \"once\"\nkey_parameter = \"key\"")] {
        let mut argv = vec![interpreter.program.display().to_string()];
        argv.extend(effects(directory, "command", "crane"));
        argv.extend(["--tool".to_owned(), tool.to_owned()]);
        let read = json!([interpreter.home, directory]);
        let _ = writeln!(
            text,
            "[commands.crane.tools.{tool}]\ndescription = \"An effect\"\nargv = {}\nstdin = \"json\"\ninput = {{ type = \"object\" }}\n\
             read = {read}\nwrite = {}\n{says}",
            json!(argv),
            json!([directory]),
        );
    }
    text
}
