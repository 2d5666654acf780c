//! A directory with real tools, the real server in it, and an execution in every state.

use crate::fixture::{PATIENCE, RUTTER};
use serde_json::{Map, Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Tools besides those of the demo: a program that ends when the gate is open, one that never ends in time, one that
/// only reads, an unreachable service, and a server that does not exist.
const PROGRAMS: &str = r#"
[limits]
breaker_failures = 2
breaker_pause = "300s"
[webhooks]
allow = ["127.0.0.1"]
[servers.gone]
command = "/no/such/program"
[http.harbourmaster]
base = "http://127.0.0.1:9"
allow = ["127.0.0.1"]
[http.harbourmaster.tools.ask]
description = "Asks the harbourmaster"
path = "/"
[commands.gate.tools.pass]
description = "Waits until the gate is open"
argv = ["/bin/sh", "-c", "while [ ! -e open ]; do sleep 0.05; done; echo passed"]
result = "text"
safety = "idempotent"
[commands.gate.tools.stall]
description = "Begins, and says nothing for a long time"
argv = ["/bin/sh", "-c", "sleep 60"]
result = "text"
[commands.gate.tools.look]
description = "Says whether the gate is open"
argv = ["/bin/sh", "-c", "test -e open && echo open || echo shut"]
result = "text"
safety = "read_only"
"#;

/// The names and contents of files.
const PLANS: &[(&str, &str)] = &[
    ("order.yaml", include_str!("../../../../../examples/demo/order.yaml")),
    ("letter.yaml", include_str!("plans/letter.yaml")),
    ("parcel.yaml", include_str!("plans/parcel.yaml")),
    ("transfer.yaml", include_str!("plans/transfer.yaml")),
    ("harbour.yaml", include_str!("plans/harbour.yaml")),
    ("outage.yaml", include_str!("plans/outage.yaml")),
    ("voyage.yaml", include_str!("plans/voyage.yaml")),
];

pub struct BrowserFixture {
    place: TempDir,
    server: Child,
    pub address: String,
    /// By their outcome.
    executions: Map<String, Value>,
}

impl BrowserFixture {
    /// Starts the server.
    pub fn open() -> BrowserFixture {
        let place = tempfile::tempdir().unwrap();
        let tools = place.path().join("tools");
        fs::create_dir(&tools).unwrap();
        let mut settings = "dir = \"data\"\n".to_owned();
        for server in ["carrier", "inventory", "mail", "payments"] {
            settings += &format!(
                "[servers.{server}]\ncommand = {RUTTER:?}\nargs = [\"demo-tools\", {server:?}, {tools:?}]\ntrust = true\n"
            );
        }
        fs::write(place.path().join("rutter.toml"), settings + PROGRAMS).unwrap();
        for (name, text) in PLANS {
            fs::write(place.path().join(name), text).unwrap();
        }
        let mut command = command(place.path(), &["serve", "--json", "--listen", "127.0.0.1:0"]);
        let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        let address = answer["http"].as_str().unwrap().to_owned();
        BrowserFixture { place, server, address, executions: Map::new() }
    }

    /// An execution in every state.
    pub fn furnish(mut self) -> BrowserFixture {
        let order = |number: u32| {
            let inputs = [format!("order=A-{number}"), "sku=lamp".to_owned(), "amount=40".to_owned()];
            inputs.into_iter().flat_map(|input| ["--input".to_owned(), input]).collect::<Vec<String>>()
        };
        self.run("completed", "order.yaml", &order(1));
        self.fault("carrier.ship", Some("the carrier has no room"));
        self.run("compensated", "order.yaml", &order(2));
        self.fault("carrier.ship", None);
        self.fault("mail.confirm", Some("the mailbox is full"));
        self.run("failed", "letter.yaml", &[]);
        self.fault("mail.confirm", None);
        self.run("approval", "parcel.yaml", &[]);
        self.run("doubt", "transfer.yaml", &[]);
        self.run("outage", "outage.yaml", &[]);
        self.leave("running", "harbour.yaml");
        self
    }

    /// Executes a plan as far as it goes.
    fn run(&mut self, name: &str, plan: &str, inputs: &[String]) {
        let mut words = vec!["run", plan, "--json"];
        words.extend(inputs.iter().map(String::as_str));
        let output = command(self.place.path(), &words).stdout(Stdio::piped()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let ids = text.split('"').find(|word| word.starts_with("exec_"));
        let id = ids.unwrap_or_else(|| panic!("{plan} was not started: {text}{:?}", output.stderr));
        self.executions.insert(name.to_owned(), json!(id));
    }

    /// Starts a plan and leaves it to the server.
    fn leave(&mut self, name: &str, plan: &str) {
        let mut child = command(self.place.path(), &["run", plan, "--json"]).spawn().unwrap();
        let until = Instant::now() + PATIENCE;
        let id = loop {
            let listed = self.json(&["exec", "list", "--json", "-n", "1"]);
            let newest = listed["execution_id"].as_str().unwrap_or_default().to_owned();
            if !newest.is_empty() && !self.executions.values().any(|known| *known == newest) {
                break newest;
            }
            assert!(Instant::now() < until, "{plan} was not started");
            thread::sleep(Duration::from_millis(20));
        };
        child.kill().unwrap();
        child.wait().unwrap();
        self.executions.insert(name.to_owned(), json!(id));
    }

    /// Sets or clears a tool's refusal.
    fn fault(&self, tool: &str, why: Option<&str>) {
        let file = self.place.path().join("tools").join(format!("{tool}.fault"));
        match why {
            Some(why) => fs::write(file, why).unwrap(),
            None => fs::remove_file(file).unwrap(),
        }
    }

    fn json(&self, words: &[&str]) -> Value {
        let output = command(self.place.path(), words).stdout(Stdio::piped()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines().next().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default()
    }

    /// Runs a scenario in the browser, and returns its output.
    pub fn play(&self, scenario: &str) -> (bool, String) {
        let mut node = Command::new("node");
        node.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/browser").join(scenario));
        node.env("RUTTER", RUTTER).env("RUTTER_PLACE", self.place.path()).env("RUTTER_ADDRESS", &self.address);
        node.env("RUTTER_EXECUTIONS", Value::Object(self.executions.clone()).to_string());
        node.env("RUTTER_BROWSER", installed());
        let pictures =
            std::env::var_os("RUTTER_PICTURES").map_or_else(|| self.place.path().join("pictures"), PathBuf::from);
        node.env("RUTTER_PICTURES", pictures);
        let output = node.stdin(Stdio::null()).output().unwrap();
        let both = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&both).into_owned())
    }
}

impl Drop for BrowserFixture {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The real program in the fixture's directory, without the user's settings.
fn command(place: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(RUTTER);
    command.args(words).current_dir(place).env_clear().env("HOME", place).env("USER", "operator");
    command.env("PATH", "/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The directory of the browser driver; it is installed if it is missing.
fn installed() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let output = Command::new(root.join("scripts/install-browser")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    root.join("target/browser/node_modules")
}
