//! `rutter open`: a one-time sign-in link for a browser.

use crate::args::key::OpenBrowserArgs;
use crate::config::Config;
use crate::daemon::{self, ServerStarter};
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::mcp;
use crate::socket::SocketRequest;
use crate::terminal::Terminal;
use rutter_core::id::TenantId;
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The page that the browser opens.
const PAGE: &str = "enter.html";

pub(crate) fn run(args: &OpenBrowserArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let config = Config::load_with(&args.store, &args.tools)?;
    let flags = mcp::flags(&args.store, &args.tools);
    let starter = ServerStarter { directory: config.directory.clone(), flags };
    // Only checks that a server listens.
    drop(starter.connect()?);
    let greeting = SocketRequest::Link { tenant: TenantId::new("default"), person: config.operator.clone() };
    let answer = match daemon::ask(&config.directory, &greeting)? {
        Some(answer) if answer["ok"] == true => answer,
        Some(answer) => return Err(CommandRefusal::from_answer(&answer).into()),
        None => {
            return Err(CommandRefusal::new("server.none", "the server ended before it replied").into());
        }
    };
    let link = answer["link"].as_str().unwrap_or_default();
    if args.store.json {
        terminal.answer(&format!("{}\n", json!({ "ok": true, "link": link })))?;
        return Ok(CommandExit::Done);
    }
    terminal.answer(&format!("{link}\n"))?;
    terminal.remark("it signs in one browser, once, within ten minutes\n");
    if !args.print && terminal.is_interactive {
        show(&config.directory, link, terminal);
    }
    Ok(CommandExit::Done)
}

/// Starts a browser, if there is one, with a page that only the owner can read: every user of this machine sees the
/// arguments of programs, and the link is as good as a password.
fn show(directory: &Path, link: &str, terminal: &Terminal) {
    let Some(browser) = browser() else { return };
    let opened = page(directory, link).and_then(|page| {
        let mut command = Command::new(&browser);
        command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn()
    });
    if let Err(error) = opened {
        terminal.remark(&format!("no browser could be started: {error}\n"));
    }
}

fn browser() -> Option<PathBuf> {
    let chosen = std::env::var_os("BROWSER").filter(|browser| !browser.is_empty());
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let known = || std::env::split_paths(&paths).map(|path| path.join("xdg-open")).find(|path| path.is_file());
    chosen.map(PathBuf::from).or_else(known)
}

fn page(directory: &Path, link: &str) -> io::Result<PathBuf> {
    let path = directory.join(PAGE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let text = format!("<!doctype html><title>Rutter</title><meta http-equiv=refresh content=\"0;url={link}\">\n");
    file.write_all(text.as_bytes())?;
    Ok(path)
}
