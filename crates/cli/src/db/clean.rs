//! `rutter db clean`: removes old executions or payloads; hashes stay, so that the rest can still be verified.

use super::sized;
use crate::args::db::{CleanTarget, DbCleanArgs};
use crate::clock;
use crate::config::RetentionConfig;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::report::counted;
use crate::store;
use crate::terminal::Terminal;
use rutter_app::cleanup::CleaningRule;
use rutter_app::principal::Principal;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::port::upkeep::{CleanedPart, CleanedTotals, StoreMaintenance};
use rutter_core::redact::Redactor;
use rutter_core::time::Millis;
use rutter_core::wording::{choices, quoted};
use rutter_store::wait;
use serde_json::{Value, json};

pub(crate) fn run(args: &DbCleanArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let config = store::config(&args.store)?;
    // What a limit of the policy still counts stays.
    let counted = config.policy.longest_window().unwrap_or_default();
    let rules = rules(args, config.retention)?.into_iter().map(|(what, age)| (what, age.max(counted)));
    let statuses = statuses(&args.statuses)?;
    let store = store::owned(&config)?;
    let now = clock::now();
    let caller = Principal::owner(args.tenant.id(), &config.operator);
    let clean = |(what, age): (CleanTarget, Millis), dry_run: bool| -> anyhow::Result<CleanedTotals> {
        let (statuses, reason) = (statuses.clone(), args.reason.clone());
        let rule = CleaningRule { statuses, age, what: CleanedPart::from(what), reason }.within(&config.policy);
        // Without a server no secret of the configuration is resolved; secrets of known shapes are recognised.
        let cleaning = rule.request(&caller, &Redactor::standard(), now, dry_run).map_err(CommandRefusal::of)?;
        Ok(wait(store.clean(cleaning))?)
    };
    let mut answers = Vec::new();
    for rule in rules {
        let mut cleaned = clean(rule, true)?;
        if !args.dry_run && cleaned != CleanedTotals::default() {
            let text = cleaned_text(rule, cleaned);
            terminal.confirm(args.yes, &format!("Remove {text}? This cannot be undone."))?;
            cleaned = clean(rule, false)?;
        }
        match args.store.json {
            true => answers.push(answer(rule, cleaned)),
            false => {
                let verb = if args.dry_run { "would remove" } else { "removed" };
                terminal.answer(&format!("{verb} {}\n", cleaned_text(rule, cleaned)))?;
            }
        }
    }
    if args.store.json {
        let answer = json!({ "ok": true, "dry_run": args.dry_run, "removed": answers });
        terminal.answer(&format!("{answer}\n"))?;
    }
    Ok(CommandExit::Done)
}

/// What to remove after how long: from the arguments, or else from the settings.
fn rules(args: &DbCleanArgs, retention: RetentionConfig) -> Result<Vec<(CleanTarget, Millis)>, CommandRefusal> {
    if let Some(text) = &args.older_than {
        let age = Millis::parse(text).ok_or_else(|| {
            let message =
                format!("{} is not an age: expected a number and ms, s, m, h or d, such as 30d", quoted(text));
            CommandRefusal::new("command.invalid", message)
        })?;
        return Ok(vec![(args.what.unwrap_or(CleanTarget::Payloads), age)]);
    }
    let configured = [(CleanTarget::Payloads, retention.payloads), (CleanTarget::Executions, retention.executions)];
    let wanted = configured.into_iter().filter(|(what, _)| args.what.is_none_or(|wanted| wanted == *what));
    let rules: Vec<(CleanTarget, Millis)> = wanted.filter_map(|(what, age)| age.map(|age| (what, age))).collect();
    match rules.is_empty() {
        false => Ok(rules),
        true => Err(CommandRefusal::new("command.invalid", "no age is given")
            .with_hint("give --older-than, or set payloads or executions under [retention] in rutter.toml")),
    }
}

fn statuses(texts: &[String]) -> Result<Vec<ExecutionStatus>, CommandRefusal> {
    let ended: Vec<&str> =
        ExecutionStatus::ALL.into_iter().filter(|status| status.has_ended()).map(ExecutionStatus::as_str).collect();
    let read = |text: &String| {
        ExecutionStatus::parse(text).filter(|status| status.has_ended()).ok_or_else(|| {
            let message = format!("no execution ends with status {}: expected {}", quoted(text), choices(&ended));
            CommandRefusal::new("command.invalid", message)
        })
    };
    texts.iter().map(read).collect()
}

fn cleaned_text((what, age): (CleanTarget, Millis), cleaned: CleanedTotals) -> String {
    let CleanedTotals { executions, entries, payloads, bytes } = cleaned;
    let payloads = counted(payloads, "payload", "payloads");
    let entries = counted(entries, "entry", "entries");
    let executions = counted(executions, "execution", "executions");
    let bytes = sized(bytes);
    match what {
        CleanTarget::Payloads => format!("{payloads} with {bytes} of {executions} untouched for {age}"),
        CleanTarget::Executions => {
            format!("{executions} untouched for {age}: {entries}, {payloads}, {bytes}")
        }
    }
}

fn answer((what, age): (CleanTarget, Millis), cleaned: CleanedTotals) -> Value {
    let what = match what {
        CleanTarget::Payloads => "payloads",
        CleanTarget::Executions => "executions",
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
