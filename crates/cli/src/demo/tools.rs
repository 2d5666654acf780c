//! The tools of the demo: this program again, as MCP servers in processes of their own. Every effect is one line in a
//! book they share, on the disk before anybody hears of it, so that what really happened can be counted.

pub(crate) mod book;

use book::{Book, Line};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// The word after which this program is one of the servers.
pub(crate) const WORD: &str = "demo-tools";
pub(crate) const SERVERS: [&str; 4] = ["carrier", "inventory", "mail", "payments"];

/// A tool: its server and name, what it takes and gives, and whether it only looks.
struct Offer {
    server: &'static str,
    name: &'static str,
    about: &'static str,
    takes: &'static [(&'static str, &'static str)],
    gives: &'static [(&'static str, &'static str)],
    only_looks: bool,
}

const OFFERS: [Offer; 7] = [
    Offer {
        server: "inventory",
        name: "reserve",
        about: "Reserves one piece for an order",
        takes: &[("order", "string"), ("sku", "string")],
        gives: &[("reservation", "string")],
        only_looks: false,
    },
    Offer {
        server: "inventory",
        name: "release",
        about: "Gives a reserved piece back",
        takes: &[("reservation", "string")],
        gives: &[("freed", "boolean")],
        only_looks: false,
    },
    Offer {
        server: "payments",
        name: "charge",
        about: "Charges a card. A second call charges a second time",
        takes: &[("amount", "number"), ("reference", "string")],
        gives: &[("receipt", "string")],
        only_looks: false,
    },
    Offer {
        server: "payments",
        name: "refund",
        about: "Pays a charge back",
        takes: &[("receipt", "string")],
        gives: &[("refund", "string")],
        only_looks: false,
    },
    Offer {
        server: "payments",
        name: "find",
        about: "Finds a charge by its reference",
        takes: &[("reference", "string")],
        gives: &[("found", "boolean"), ("receipt", "string")],
        only_looks: true,
    },
    Offer {
        server: "carrier",
        name: "ship",
        about: "Has a parcel picked up",
        takes: &[("order", "string")],
        gives: &[("tracking", "string")],
        only_looks: false,
    },
    Offer {
        server: "mail",
        name: "confirm",
        about: "Sends the customer a mail",
        takes: &[("order", "string"), ("text", "string")],
        gives: &[("message", "string")],
        only_looks: false,
    },
];

/// What goes wrong with every call of a tool for as long as it is said.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// It says no, and nothing happened.
    Refuses(&'static str),
    /// It takes effect, and then says nothing more for as long as it lives.
    FallsSilent,
}

const SILENT: &str = "falls silent";

impl Fault {
    /// The text of the file that says so.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Fault::Refuses(why) => why,
            Fault::FallsSilent => SILENT,
        }
    }
}

/// The file that says what goes wrong with a tool.
pub(crate) fn fault_file(tool: &str) -> String {
    format!("{tool}.fault")
}

/// A server that speaks MCP on its standard input and output, until that ends.
pub(crate) fn main(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(server), Some(folder)) = (words.next(), words.next()) else { return ExitCode::from(2) };
    let folder = PathBuf::from(folder);
    let shop = Shop { server: server.to_string_lossy().into_owned(), book: Book::in_folder(&folder), folder };
    match shop.serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(4),
    }
}

struct Shop {
    server: String,
    folder: PathBuf,
    book: Book,
}

impl Shop {
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
                    // Whoever asked may die waiting; this process ends when that has happened.
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
        let own = OFFERS.iter().filter(|offer| offer.server == self.server);
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

    /// Takes effect and answers; says nothing where the story wants it so.
    fn call(&self, params: &Value) -> io::Result<Option<Value>> {
        let own = |offer: &&Offer| offer.server == self.server && params["name"] == offer.name;
        let Some(offer) = OFFERS.iter().find(own) else {
            return Ok(Some(json!({ "error": { "code": -32602, "message": "no such tool" } })));
        };
        let tool = format!("{}.{}", offer.server, offer.name);
        let arguments = &params["arguments"];
        self.book.write(&Line::call(&tool, arguments))?;
        if offer.only_looks {
            return Ok(Some(done(self.look(arguments)?)));
        }
        let fault = fs::read_to_string(self.folder.join(fault_file(&tool))).ok();
        if let Some(why) = fault.as_deref().filter(|text| *text != SILENT) {
            let content = json!([{ "type": "text", "text": why }]);
            return Ok(Some(json!({ "result": { "content": content, "isError": true } })));
        }
        let number = self.book.read()?.effects_of(&tool) + 1;
        self.book.write(&Line::effect(&tool, arguments))?;
        Ok(fault.is_none().then(|| done(given(offer, number))))
    }

    /// Finds a charge by its reference.
    fn look(&self, arguments: &Value) -> io::Result<Value> {
        let lines = self.book.read()?;
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

fn given(offer: &Offer, number: usize) -> Value {
    let fields = offer.gives.iter().map(|(name, kind)| {
        let value = match *kind {
            "boolean" => json!(true),
            _ => json!(format!("{name}-{number}")),
        };
        ((*name).to_owned(), value)
    });
    Value::Object(fields.collect())
}

/// The first so many fields are always there, and there are no others.
fn schema(fields: &[(&str, &str)], required: usize) -> Value {
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).take(required).collect();
    let properties = fields.iter().map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind })));
    let properties = Value::Object(properties.collect());
    json!({ "type": "object", "properties": properties, "required": names, "additionalProperties": false })
}
