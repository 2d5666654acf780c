//! `rutter key`: makes, lists and ends keys, through the server where one runs, and otherwise in the database itself.

use crate::Exit;
use crate::args::key::{KeyCommand, KeyCreateArgs};
use crate::config::Config;
use crate::daemon::{self, Done};
use crate::failure::Refusal;
use crate::table::{Cell, Paint, columns};
use crate::terminal::{Terminal, printable};
use crate::{helm, store};
use anyhow::Context;
use rutter_core::id::TenantId;
use rutter_server::auth::key::{KeyStatus, KeyView, NewKey, Wish};
use rutter_server::guest::Guest;
use rutter_server::keys::Keys;
use rutter_server::socket::Greeting;
use rutter_store::Store;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) fn run(command: &KeyCommand, terminal: &Terminal) -> anyhow::Result<Exit> {
    let config = store::config(command.store())?;
    let (tenant, wish) = match command {
        KeyCommand::Create(args) => (args.tenant.id(), Wish::Create(new(args))),
        KeyCommand::List(args) => (args.tenant.id(), Wish::List),
        KeyCommand::Revoke(args) => (args.tenant.id(), Wish::Revoke(args.id.clone())),
    };
    let person = config.operator.clone();
    let greeting = Greeting::Key { tenant: tenant.clone(), person, wish: wish.clone() };
    let here = || helm::on_runtime(here(&config, tenant.clone(), wish.clone()));
    let mut answer = match daemon::here_or_there(&config.directory, &greeting, here)? {
        Done::Here(answer) => answer,
        Done::There(answer) if answer["ok"] != true => return Err(Refusal::told(&answer).into()),
        Done::There(answer) => answer,
    };
    if command.store().json {
        answer["ok"] = json!(true);
        terminal.answer(&format!("{answer}\n"))?;
        return Ok(Exit::Done);
    }
    tell(command, &answer, terminal)?;
    Ok(Exit::Done)
}

fn new(args: &KeyCreateArgs) -> NewKey {
    let scopes = args.scopes.iter().copied().collect();
    NewKey { name: args.name.clone(), scopes, expires_in: args.expires }
}

/// Nobody has the database.
async fn here(config: &Config, tenant: TenantId, wish: Wish) -> anyhow::Result<Value> {
    let store = Arc::new(Store::open(store::options(config))?);
    let keys = Keys::of(&config.directory).context("the keys beside the database")?;
    let auth = helm::auth(store, rutter_engine::Clock::system(), config, &keys).await?;
    let done = auth.grant(&Guest::owner(tenant, &config.operator), wish).await;
    Ok(done.map_err(Refusal::from)?)
}

fn tell(command: &KeyCommand, answer: &Value, terminal: &Terminal) -> anyhow::Result<()> {
    match command {
        KeyCommand::Create(_) => {
            let key = KeyView::deserialize(&answer["key"])?;
            terminal.answer(&format!("{}\n", answer["secret"].as_str().unwrap_or_default()))?;
            let told = "this is the only time it is shown; send it as Authorization: Bearer";
            terminal.remark(&format!("key {} for {}; {told}\n", key.id, printable(&key.name)));
        }
        KeyCommand::List(_) => {
            let keys = Vec::<KeyView>::deserialize(&answer["keys"])?;
            if keys.is_empty() {
                terminal.remark("there is no key; `rutter key create` makes one\n");
            }
            let rows: Vec<Vec<Cell>> = keys.iter().map(row).collect();
            terminal.answer(&columns(&rows).into_iter().map(|line| line + "\n").collect::<String>())?;
        }
        KeyCommand::Revoke(_) => {
            let key = KeyView::deserialize(&answer["key"])?;
            let when = key.revoked_at.unwrap_or_default();
            terminal.remark(&format!(
                "key {} of {} is good no more since {when}\n",
                key.id,
                printable(&key.name)
            ));
        }
    }
    Ok(())
}

fn row(key: &KeyView) -> Vec<Cell> {
    let (status, paint) = match key.status {
        KeyStatus::Active => ("active", Paint::Green),
        KeyStatus::Expired => ("expired", Paint::Yellow),
        KeyStatus::Revoked => ("revoked", Paint::Dim),
    };
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    let time = |what: &str, at: &Option<String>| match at {
        Some(at) => format!("{what} {at}"),
        None => String::new(),
    };
    vec![
        key.id.as_str().into(),
        Cell::new(status, paint),
        printable(&key.name).into(),
        scopes.join(",").into(),
        Cell::new(format!("made {}", key.created_at), Paint::Dim),
        Cell::new(time("expires", &key.expires_at), Paint::Dim),
        Cell::new(time("used", &key.last_used_at), Paint::Dim),
    ]
}
