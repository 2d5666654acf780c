//! `rutter db clean`: what ended long ago goes; its hashes stay, so that the rest can still be verified.

use super::sized;
use crate::Exit;
use crate::args::db::{CleanArgs, What};
use crate::clock;
use crate::config::Retention;
use crate::failure::Refusal;
use crate::report::counted;
use crate::store;
use crate::terminal::Terminal;
use rutter_core::actor::Actor;
use rutter_core::execution::view::Status;
use rutter_core::plan::wording::{choices, quoted};
use rutter_core::port::upkeep::{Cleaned, CleanedPart, Cleaning, Upkeep};
use rutter_core::time::{Millis, Timestamp};
use rutter_store::wait;
use serde_json::{Value, json};

pub(crate) fn run(args: &CleanArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let config = store::config(&args.store)?;
    let rules = rules(args, config.retention)?;
    let statuses = statuses(&args.statuses)?;
    let store = store::owned(&config)?;
    let now = clock::now();
    let clean = |(what, age): (What, Millis), dry_run: bool| -> anyhow::Result<Cleaned> {
        let reason = args.reason.clone().unwrap_or_else(|| format!("untouched for {age}"));
        let cleaning = Cleaning {
            tenant: args.tenant.id(),
            statuses: statuses.clone(),
            untouched_since: Timestamp(now.0.saturating_sub(i64::try_from(age.0).unwrap_or(i64::MAX))),
            what: CleanedPart::from(what),
            dry_run,
            actor: Actor::person(&config.operator),
            at: now,
            reason,
        };
        Ok(wait(store.clean(cleaning))?)
    };
    let mut answers = Vec::new();
    for rule in rules {
        let mut cleaned = clean(rule, true)?;
        if !args.dry_run && cleaned != Cleaned::default() {
            let told = told(rule, cleaned);
            terminal.confirm(args.yes, &format!("Remove {told}? It cannot be brought back."))?;
            cleaned = clean(rule, false)?;
        }
        match args.store.json {
            true => answers.push(answer(rule, cleaned)),
            false => {
                let verb = if args.dry_run { "would remove" } else { "removed" };
                terminal.answer(&format!("{verb} {}\n", told(rule, cleaned)))?;
            }
        }
    }
    if args.store.json {
        let answer = json!({ "ok": true, "dry_run": args.dry_run, "removed": answers });
        terminal.answer(&format!("{answer}\n"))?;
    }
    Ok(Exit::Done)
}

/// What to take away after how long: what was typed, or else what is configured.
fn rules(args: &CleanArgs, retention: Retention) -> Result<Vec<(What, Millis)>, Refusal> {
    if let Some(text) = &args.older_than {
        let age = Millis::parse(text).ok_or_else(|| {
            let message =
                format!("{} is no age: expected a number and ms, s, m, h or d, such as 30d", quoted(text));
            Refusal::new("command.invalid", message)
        })?;
        return Ok(vec![(args.what.unwrap_or(What::Payloads), age)]);
    }
    let configured = [(What::Payloads, retention.payloads), (What::Executions, retention.executions)];
    let wanted = configured.into_iter().filter(|(what, _)| args.what.is_none_or(|wanted| wanted == *what));
    let rules: Vec<(What, Millis)> = wanted.filter_map(|(what, age)| age.map(|age| (what, age))).collect();
    match rules.is_empty() {
        false => Ok(rules),
        true => Err(Refusal::new("command.invalid", "nothing says how old is old enough")
            .with_hint("give --older-than, or set payloads or executions under [retention] in rutter.toml")),
    }
}

fn statuses(texts: &[String]) -> Result<Vec<Status>, Refusal> {
    let ended: Vec<&str> =
        Status::ALL.into_iter().filter(|status| status.has_ended()).map(Status::as_str).collect();
    let read = |text: &String| {
        Status::parse(text).filter(|status| status.has_ended()).ok_or_else(|| {
            let message = format!("no execution ends {}: expected {}", quoted(text), choices(&ended));
            Refusal::new("command.invalid", message)
        })
    };
    texts.iter().map(read).collect()
}

fn told((what, age): (What, Millis), cleaned: Cleaned) -> String {
    let Cleaned { executions, entries, payloads, bytes } = cleaned;
    let payloads = counted(payloads, "payload", "payloads");
    let entries = counted(entries, "entry", "entries");
    let executions = counted(executions, "execution", "executions");
    let bytes = sized(bytes);
    match what {
        What::Payloads => format!("{payloads} with {bytes} of {executions} untouched for {age}"),
        What::Executions => format!("{executions} untouched for {age}: {entries}, {payloads}, {bytes}"),
    }
}

fn answer((what, age): (What, Millis), cleaned: Cleaned) -> Value {
    let what = match what {
        What::Payloads => "payloads",
        What::Executions => "executions",
    };
    json!({
        "what": what,
        "older_than_ms": age,
        "executions": cleaned.executions,
        "entries": cleaned.entries,
        "payloads": cleaned.payloads,
        "bytes": cleaned.bytes,
    })
}
