//! The server: whether one runs, which version, and whether its address is free.

use super::DoctorCheck;
use crate::config::Config;
use crate::daemon;
use crate::socket::SocketRequest;
use serde_json::Value;
use std::net::TcpListener;

/// The process that owns the database, if it replies.
pub(super) fn who(config: &Config, checks: &mut Vec<DoctorCheck>) -> Option<Value> {
    match daemon::ask(&config.directory, &SocketRequest::Who) {
        Ok(who) => who.filter(|who| who["ok"] == true),
        Err(error) => {
            let fix = "`rutter stop` stops it; the next command starts another";
            checks.push(DoctorCheck::failed("server", format!("it runs and does not reply: {error}"), fix));
            None
        }
    }
}

pub(super) fn look(config: &Config, who: Option<&Value>, checks: &mut Vec<DoctorCheck>) {
    let ours = env!("CARGO_PKG_VERSION");
    let link = who.and_then(|who| who["link"].as_str());
    match who {
        None => checks.push(DoctorCheck::fine("server", "none runs; `rutter mcp` starts one when an agent needs it")),
        Some(who) if who["version"] != ours => checks.push(DoctorCheck::failed(
            "server",
            format!("process {} is version {}, this is {ours}", who["pid"], who["version"]),
            "`rutter stop` stops it; the next command starts another",
        )),
        Some(who) => {
            let link = link.unwrap_or("only over its socket");
            let message = format!("version {ours}, process {}, {} executions, {link}", who["pid"], who["executions"]);
            checks.push(DoctorCheck::fine("server", message));
        }
    }
    if let Err(refusal) = config.server.tokens() {
        let fix = "give its location under [server.tokens], with env or file";
        checks.push(DoctorCheck::failed("server tokens", refusal.to_string(), fix));
    }
    let address = config.server.listen;
    let is_ours = link == Some(format!("http://{address}").as_str());
    checks.push(match TcpListener::bind(address) {
        _ if is_ours => DoctorCheck::fine("address", format!("{address} is used by the server")),
        Ok(_) => DoctorCheck::fine("address", format!("{address} is free")),
        Err(error) => DoctorCheck::doubtful(
            "address",
            format!("{address} cannot be used: {error}"),
            "choose another with RUTTER_LISTEN, --listen, or `listen` under [server]; `rutter mcp` does not need it",
        ),
    });
}
