//! The server: whether one is there, which version, and whether its address is free.

use super::Check;
use crate::config::Config;
use crate::daemon;
use rutter_server::socket::Greeting;
use serde_json::Value;
use std::net::TcpListener;

/// Who has the database, if somebody answers.
pub(super) fn who(config: &Config, checks: &mut Vec<Check>) -> Option<Value> {
    match daemon::ask(&config.directory, &Greeting::Who) {
        Ok(who) => who.filter(|who| who["ok"] == true),
        Err(error) => {
            let fix = "`rutter stop` ends it; the next command starts another";
            checks.push(Check::failed("server", format!("it is there and does not answer: {error}"), fix));
            None
        }
    }
}

pub(super) fn look(config: &Config, who: Option<&Value>, checks: &mut Vec<Check>) {
    let ours = env!("CARGO_PKG_VERSION");
    let link = who.and_then(|who| who["link"].as_str());
    match who {
        None => checks
            .push(Check::fine("server", "none is there; `rutter mcp` starts one when an agent needs it")),
        Some(who) if who["version"] != ours => checks.push(Check::failed(
            "server",
            format!("process {} is version {}, this is {ours}", who["pid"], who["version"]),
            "`rutter stop` ends it; the next command starts another",
        )),
        Some(who) => {
            let link = link.unwrap_or("only over its socket");
            let said =
                format!("version {ours}, process {}, {} executions, {link}", who["pid"], who["executions"]);
            checks.push(Check::fine("server", said));
        }
    }
    if let Err(refusal) = config.server.tokens() {
        let fix = "say under [server.tokens] where it is kept, with env or file";
        checks.push(Check::failed("server tokens", refusal.to_string(), fix));
    }
    let address = config.server.listen;
    let is_ours = link == Some(format!("http://{address}").as_str());
    checks.push(match TcpListener::bind(address) {
        _ if is_ours => Check::fine("address", format!("{address} is the server's")),
        Ok(_) => Check::fine("address", format!("{address} is free")),
        Err(error) => Check::doubtful(
            "address",
            format!("{address} cannot be used: {error}"),
            "name another with RUTTER_LISTEN, --listen, or `listen` under [server]; agents over pipes do not need it",
        ),
    });
}
