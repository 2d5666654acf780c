//! `rutter key`: creates, lists and revokes keys, through the server if one runs, otherwise in the database itself.

use crate::args::key::{KeyCommand, KeyCreateArgs};
use crate::config::Config;
use crate::daemon::{self, HandledBy};
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::printable::printable;
use crate::socket::SocketRequest;
use crate::store;
use crate::table::{CellColor, TableCell, columns};
use crate::terminal::Terminal;
use anyhow::Context;
use rutter_app::auth::Authenticator;
use rutter_app::auth::key::{ApiKeyView, KeyRequest, KeyStatus, NewApiKey};
use rutter_app::keys::InstallationKeys;
use rutter_app::principal::Principal;
use rutter_core::id::TenantId;
use rutter_store::SqliteStore;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) fn run(command: &KeyCommand, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let (store, tenant, wish) = match command {
        KeyCommand::Create(args) => (&args.store, args.tenant.id(), KeyRequest::Create(new(args))),
        KeyCommand::List(args) => (&args.store, args.tenant.id(), KeyRequest::List),
        KeyCommand::Revoke(args) => (&args.store, args.tenant.id(), KeyRequest::Revoke(args.id.clone())),
    };
    let config = store::config(store)?;
    let person = config.operator.clone();
    let greeting = SocketRequest::Key { tenant: tenant.clone(), person, wish: wish.clone() };
    let here = || crate::blocking::block_on(run_locally(&config, tenant.clone(), wish.clone()));
    let mut answer = match daemon::locally_or_by_server(&config.directory, &greeting, here)? {
        HandledBy::ThisProcess(answer) => answer,
        HandledBy::Server(answer) if answer["ok"] != true => {
            return Err(CommandRefusal::from_answer(&answer).into());
        }
        HandledBy::Server(answer) => answer,
    };
    if store.json {
        answer["ok"] = json!(true);
        terminal.answer(&format!("{answer}\n"))?;
        return Ok(CommandExit::Done);
    }
    tell(command, &answer, terminal)?;
    Ok(CommandExit::Done)
}

fn new(args: &KeyCreateArgs) -> NewApiKey {
    let scopes = args.scopes.iter().copied().collect();
    NewApiKey { name: args.name.clone(), scopes, expires_in: args.expires }
}

/// No server owns the database.
async fn run_locally(config: &Config, tenant: TenantId, wish: KeyRequest) -> anyhow::Result<Value> {
    let store = Arc::new(SqliteStore::open(store::options(config))?);
    let keys = InstallationKeys::of(&config.directory).context("the keys beside the database")?;
    let tokens = keys.tokens(config.server.tokens().unwrap_or_default(), &config.operator);
    let auth = Authenticator::open(store, tenant.clone(), Arc::new(crate::clock::now), tokens).await?;
    let done = auth.grant(&Principal::owner(tenant, &config.operator), wish).await;
    Ok(done.map_err(CommandRefusal::from)?)
}

fn tell(command: &KeyCommand, answer: &Value, terminal: &Terminal) -> anyhow::Result<()> {
    match command {
        KeyCommand::Create(_) => {
            let key = ApiKeyView::deserialize(answer)?;
            terminal.answer(&format!("{}\n", answer["secret"].as_str().unwrap_or_default()))?;
            let report = "its secret is printed only this once; send it as Authorization: Bearer";
            terminal.remark(&format!("key {} for {}; {report}\n", key.id, printable(&key.name)));
        }
        KeyCommand::List(_) => {
            let keys = Vec::<ApiKeyView>::deserialize(&answer["keys"])?;
            if keys.is_empty() {
                terminal.remark("there is no key; `rutter key create` creates one\n");
            }
            let rows: Vec<Vec<TableCell>> = keys.iter().map(row).collect();
            terminal.answer(&columns(&rows).into_iter().map(|line| line + "\n").collect::<String>())?;
        }
        KeyCommand::Revoke(_) => {
            let key = ApiKeyView::deserialize(answer)?;
            let when = key.revoked_at.unwrap_or_default();
            terminal.remark(&format!("key {} of {} is revoked since {when}\n", key.id, printable(&key.name)));
        }
    }
    Ok(())
}

fn row(key: &ApiKeyView) -> Vec<TableCell> {
    let (status, paint) = match key.status {
        KeyStatus::Active => ("active", CellColor::Green),
        KeyStatus::Expired => ("expired", CellColor::Yellow),
        KeyStatus::Revoked => ("revoked", CellColor::Dim),
    };
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    let time = |what: &str, at: &Option<String>| match at {
        Some(at) => format!("{what} {at}"),
        None => String::new(),
    };
    vec![
        key.id.as_str().into(),
        TableCell::new(status, paint),
        printable(&key.name).into(),
        scopes.join(",").into(),
        TableCell::new(format!("created {}", key.created_at), CellColor::Dim),
        TableCell::new(time("expires", &key.expires_at), CellColor::Dim),
        TableCell::new(time("used", &key.last_used_at), CellColor::Dim),
    ]
}
