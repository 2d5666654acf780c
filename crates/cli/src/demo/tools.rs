//! The tools of the demo: this program again, as MCP servers in separate processes. Every effect is one line in a
//! shared log, synced to disk before the response, so that the actual effects can be counted.

pub(crate) mod call_log;

use call_log::{CallLogLine, ToolCallLog};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// The argument that makes this program one of the servers.
pub(crate) const WORD: &str = "demo-tools";
pub(crate) const SERVERS: [&str; 4] = ["carrier", "inventory", "mail", "payments"];

/// A tool: its server and name, its parameters and result, and whether it only reads.
struct DemoTool {
    server: &'static str,
    name: &'static str,
    about: &'static str,
    takes: &'static [(&'static str, &'static str)],
    gives: &'static [(&'static str, &'static str)],
    only_looks: bool,
}

const DEMO_TOOLS: [DemoTool; 7] = [
    DemoTool {
        server: "inventory",
        name: "reserve",
        about: "Reserves one piece for an order",
        takes: &[("order", "string"), ("sku", "string")],
        gives: &[("reservation", "string")],
        only_looks: false,
    },
    DemoTool {
        server: "inventory",
        name: "release",
        about: "Releases a reserved piece",
        takes: &[("reservation", "string")],
        gives: &[("freed", "boolean")],
        only_looks: false,
    },
    DemoTool {
        server: "payments",
        name: "charge",
        about: "Charges a card. A second call charges a second time",
        takes: &[("amount", "number"), ("reference", "string")],
        gives: &[("receipt", "string")],
        only_looks: false,
    },
    DemoTool {
        server: "payments",
        name: "refund",
        about: "Refunds a charge",
        takes: &[("receipt", "string")],
        gives: &[("refund", "string")],
        only_looks: false,
    },
    DemoTool {
        server: "payments",
        name: "find",
        about: "Finds a charge by its reference",
        takes: &[("reference", "string")],
        gives: &[("found", "boolean"), ("receipt", "string")],
        only_looks: true,
    },
    DemoTool {
        server: "carrier",
        name: "ship",
        about: "Has a parcel picked up",
        takes: &[("order", "string")],
        gives: &[("tracking", "string")],
        only_looks: false,
    },
    DemoTool {
        server: "mail",
        name: "confirm",
        about: "Sends the customer a mail",
        takes: &[("order", "string"), ("text", "string")],
        gives: &[("message", "string")],
        only_looks: false,
    },
];

/// A fault of every call of a tool while it is set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DemoFault {
    /// It refuses, without an effect.
    Refuses(&'static str),
    /// It takes effect, and then never responds.
    FallsSilent,
}

const SILENT: &str = "falls silent";

impl DemoFault {
    /// The text of its file.
    pub(crate) fn text(self) -> &'static str {
        match self {
            DemoFault::Refuses(why) => why,
            DemoFault::FallsSilent => SILENT,
        }
    }
}

/// The file with a tool's fault.
pub(crate) fn fault_file(tool: &str) -> String {
    format!("{tool}.fault")
}

/// An MCP server on stdin and stdout, until stdin closes.
pub(crate) fn main(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(server), Some(folder)) = (words.next(), words.next()) else { return ExitCode::from(2) };
    let folder = PathBuf::from(folder);
    let shop = DemoToolServer {
        server: server.to_string_lossy().into_owned(),
        call_log: ToolCallLog::in_folder(&folder),
        folder,
    };
    match shop.serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(4),
    }
}

struct DemoToolServer {
    server: String,
    folder: PathBuf,
    call_log: ToolCallLog,
}

impl DemoToolServer {
    fn serve(&self) -> io::Result<()> {
        let mut lines = io::stdin().lock().lines();
        let mut stdout = io::stdout().lock();
        while let Some(line) = lines.next().transpose()? {
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            let Some(id) = message.get("id") else { continue };
            let answer = match message["method"].as_str() {
                Some("initialize") => json!({ "result": {
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": self.server, "version": "1" },
                } }),
                Some("ping") => json!({ "result": {} }),
                Some("tools/list") => json!({ "result": { "tools": self.offered() } }),
                Some("tools/call") => match self.call(&message["params"])? {
                    Some(answer) => answer,
                    // The caller may die waiting; this process ends with it.
                    None => return lines.try_for_each(|line| line.map(drop)),
                },
                _ => json!({ "error": { "code": -32601, "message": "no such method" } }),
            };
            let mut answer = answer;
            answer["jsonrpc"] = json!("2.0");
            answer["id"] = id.clone();
            writeln!(stdout, "{answer}")?;
            stdout.flush()?;
        }
        Ok(())
    }

    fn offered(&self) -> Vec<Value> {
        let own = DEMO_TOOLS.iter().filter(|offer| offer.server == self.server);
        own.map(|offer| {
            json!({
                "name": offer.name,
                "description": offer.about,
                "inputSchema": schema(offer.takes, offer.takes.len()),
                "outputSchema": schema(offer.gives, 1),
                "annotations": { "readOnlyHint": offer.only_looks },
            })
        })
        .collect()
    }

    /// Takes effect and responds; `None` if it falls silent.
    fn call(&self, params: &Value) -> io::Result<Option<Value>> {
        let own = |offer: &&DemoTool| offer.server == self.server && params["name"] == offer.name;
        let Some(offer) = DEMO_TOOLS.iter().find(own) else {
            return Ok(Some(json!({ "error": { "code": -32602, "message": "no such tool" } })));
        };
        let tool = format!("{}.{}", offer.server, offer.name);
        let arguments = &params["arguments"];
        self.call_log.write(&CallLogLine::call(&tool, arguments))?;
        if offer.only_looks {
            return Ok(Some(done(self.look(arguments)?)));
        }
        let fault = fs::read_to_string(self.folder.join(fault_file(&tool))).ok();
        if let Some(why) = fault.as_deref().filter(|text| *text != SILENT) {
            let content = json!([{ "type": "text", "text": why }]);
            return Ok(Some(json!({ "result": { "content": content, "isError": true } })));
        }
        let number = self.call_log.read()?.effects_of(&tool) + 1;
        self.call_log.write(&CallLogLine::effect(&tool, arguments))?;
        Ok(fault.is_none().then(|| done(given(offer, number))))
    }

    /// Finds a charge by its reference.
    fn look(&self, arguments: &Value) -> io::Result<Value> {
        let lines = self.call_log.read()?;
        let mut charges = lines.effects().filter(|line| line.tool == "payments.charge");
        let found = charges.position(|line| line.arguments["reference"] == arguments["reference"]);
        Ok(match found {
            Some(at) => json!({ "found": true, "receipt": format!("receipt-{}", at + 1) }),
            None => json!({ "found": false }),
        })
    }
}

fn done(result: Value) -> Value {
    json!({ "result": {
        "content": [{ "type": "text", "text": result.to_string() }], "structuredContent": result, "isError": false,
    } })
}

fn given(offer: &DemoTool, number: usize) -> Value {
    let fields = offer.gives.iter().map(|(name, kind)| {
        let value = match *kind {
            "boolean" => json!(true),
            _ => json!(format!("{name}-{number}")),
        };
        ((*name).to_owned(), value)
    });
    Value::Object(fields.collect())
}

/// The first `required` fields are required, and no others are allowed.
fn schema(fields: &[(&str, &str)], required: usize) -> Value {
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).take(required).collect();
    let properties = fields.iter().map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind })));
    let properties = Value::Object(properties.collect());
    json!({ "type": "object", "properties": properties, "required": names, "additionalProperties": false })
}
