//! `rutter journal verify`: whether journals are intact, at which assurance, and what is not covered.

use crate::args::journal::JournalVerifyArgs;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::printable::printable;
use crate::report::counted;
use crate::store;
use crate::table::{CellColor, wrapped};
use crate::terminal::Terminal;
use anyhow::Context;
use rutter_app::view::VerdictView;
use rutter_core::journal::note::VerifierKey;
use rutter_core::journal::verify::{
    Assurance, EntryReceipt, FaultReason, LedgerVerifier, TrustAnchors, VerificationFault, VerificationReport,
};
use rutter_core::port::proof::LedgerCheck;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Longer than an entry with the largest possible payloads, every byte escaped.
const LINE_BYTES_MAX: u64 = 512 << 20;
/// Between two reports of progress.
const LINES_BETWEEN: u64 = 10_000;

pub(crate) fn run(args: &JournalVerifyArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let trust = trust(args)?;
    let (subject, checked) = match &args.export {
        Some(path) => (name_of(path), LedgerCheck { verdict: check_file(path, trust, terminal)?, rows: Vec::new() }),
        None => (format!("the ledger of {}", args.tenant.id()), check_database(args, trust, terminal)?),
    };
    let required = Assurance::from(args.require);
    let is_enough = checked.verdict.assurance >= required;
    let is_ok = checked.is_clean() && is_enough;
    match args.store.json {
        true => terminal.answer(&format!("{}\n", answer(&subject, &checked, required, is_ok)))?,
        false => {
            let (is_file, has_keys) = (args.export.is_some(), !args.keys.is_empty());
            let verdict_text = VerdictText { subject: &subject, checked: &checked, is_file, has_keys };
            terminal.answer(&verdict_text.text())?;
            if checked.is_clean() && !is_enough {
                let (found, wanted) = (VerdictView::level(checked.verdict.assurance), VerdictView::level(required));
                terminal.answer(&format!("\nThis is {found}, and {wanted} was required.\n"))?;
            }
        }
    }
    Ok(if is_ok { CommandExit::Done } else { CommandExit::Differs })
}

/// The keys, checkpoints and receipts given by the user.
fn trust(args: &JournalVerifyArgs) -> anyhow::Result<TrustAnchors> {
    let mut trust = TrustAnchors::default();
    for key in &args.keys {
        trust.keys.push(read_key(key)?);
    }
    for path in &args.checkpoints {
        trust.checkpoints.push(read(path)?);
    }
    for path in &args.receipts {
        let receipt: Result<EntryReceipt, _> = serde_json::from_str(&read(path)?);
        let bad =
            |error| CommandRefusal::new("file.unreadable", format!("{} is not a receipt: {error}", path.display()));
        trust.receipts.push(receipt.map_err(bad)?);
    }
    Ok(trust)
}

/// A key itself, or a file with one.
fn read_key(text: &str) -> anyhow::Result<VerifierKey> {
    if let Ok(key) = VerifierKey::parse(text) {
        return Ok(key);
    }
    let path = Path::new(text);
    let bad = |error| {
        CommandRefusal::new("file.unreadable", format!("{text} is neither a public key nor a file with one: {error}"))
    };
    Ok(VerifierKey::parse(read(path)?.trim()).map_err(|error| bad(error.to_string()))?)
}

fn read(path: &Path) -> Result<String, CommandRefusal> {
    fs::read_to_string(path)
        .map_err(|error| CommandRefusal::new("file.unreadable", format!("cannot read {}: {error}", path.display())))
}

fn name_of(path: &Path) -> String {
    if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() }
}

/// Reads an export line by line; holds one line in memory.
fn check_file(path: &Path, trust: TrustAnchors, terminal: &Terminal) -> anyhow::Result<VerificationReport> {
    let mut source: Box<dyn BufRead> = match path == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => {
            let unreadable =
                |error| CommandRefusal::new("file.unreadable", format!("cannot read {}: {error}", path.display()));
            Box::new(BufReader::new(File::open(path).map_err(unreadable)?))
        }
    };
    let mut verifier = LedgerVerifier::new(trust);
    let (mut line, mut count) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = source.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if read.with_context(|| format!("cannot read {}", path.display()))? == 0 {
            break;
        }
        verifier.read(line.strip_suffix(b"\n").unwrap_or(&line));
        count += 1;
        if count % LINES_BETWEEN == 0 {
            terminal.progress(&format!("{count} lines"));
        }
    }
    terminal.progress("");
    Ok(verifier.finish())
}

fn check_database(
    args: &JournalVerifyArgs,
    mut trust: TrustAnchors,
    terminal: &Terminal,
) -> anyhow::Result<LedgerCheck> {
    let tenant = args.tenant.id();
    let mut archive = store::archive(&args.store)?;
    store::check_tenant(&archive, &tenant)?;
    if trust.keys.is_empty() {
        trust.keys.extend(archive.public_key()?);
    }
    let checked = archive.verify(&tenant, trust, args.projections, &mut |entries| {
        terminal.progress(&format!("{entries} entries"));
    })?;
    terminal.progress("");
    Ok(checked)
}

/// The verdict, and what was asked.
fn answer(subject: &str, checked: &LedgerCheck, required: Assurance, is_ok: bool) -> Value {
    let mut answer = json!(VerdictView::of(checked));
    answer["ok"] = json!(is_ok);
    answer["subject"] = json!(subject);
    answer["required"] = json!(VerdictView::level(required));
    answer
}

/// A report for people.
struct VerdictText<'a> {
    subject: &'a str,
    checked: &'a LedgerCheck,
    is_file: bool,
    has_keys: bool,
}

impl VerdictText<'_> {
    fn text(&self) -> String {
        let LedgerCheck { verdict, rows } = self.checked;
        let subject = printable(self.subject);
        let state = match &verdict.fault {
            None if rows.is_empty() => CellColor::Green.on("is intact"),
            Some(fault) if is_about_trust(&fault.why) => CellColor::Red.on("cannot be trusted"),
            _ => CellColor::Red.on("is not intact"),
        };
        let mut text = format!("{subject} {state}\n");
        let mut lines = Vec::new();
        if let Some(fault) = &verdict.fault {
            lines.push(("first fault", self.place(fault)));
        }
        lines.extend(rows.iter().map(|row| ("differs", row.clone())));
        lines.push(("checked", sum(verdict)));
        if verdict.is_clean() {
            let words = verdict.assurance.to_string();
            let (name, meaning) = words.split_once(": ").unwrap_or(("", &words));
            lines.push(("level", name.to_owned()));
            lines.push(("that means", meaning.to_owned()));
            lines.extend(left_open(verdict).into_iter().map(|sentence| ("not covered", sentence)));
            lines.extend(self.advice().map(|advice| ("for more", advice.to_owned())));
        }
        let mut last = "";
        for (name, sentence) in lines {
            let visible = if name == last { "" } else { name };
            text.push_str(&wrapped(&format!("  {visible:11}  {}", printable(&sentence)), 15));
            text.push('\n');
            last = name;
        }
        text
    }

    /// Only a file has line numbers.
    fn place(&self, fault: &VerificationFault) -> String {
        match (self.is_file && fault.line > 0, &fault.entry) {
            (true, _) => fault.to_string(),
            (false, Some((execution, seq))) => format!("entry {seq} of {execution}: {}", fault.why),
            (false, None) => fault.why.to_string(),
        }
    }

    fn advice(&self) -> Option<&'static str> {
        match (self.checked.verdict.assurance, self.is_file) {
            (Assurance::ChainOnly, true) if !self.has_keys => Some("give the public key with --key"),
            (Assurance::ChainOnly, _) => Some("there must be a checkpoint, signed by a key you trust"),
            (Assurance::Signed, _) => Some(
                "store the output of `rutter journal checkpoint` elsewhere, and pass it with --checkpoint next time",
            ),
            (Assurance::Compared, _) => None,
        }
    }
}

/// Whether the fault is that the given key, checkpoint or receipt does not match this ledger.
fn is_about_trust(why: &FaultReason) -> bool {
    matches!(
        why,
        FaultReason::Key(_)
            | FaultReason::OutsideCheckpoint(_)
            | FaultReason::NotComparable { .. }
            | FaultReason::ReceiptTenant
    )
}

fn sum(verdict: &VerificationReport) -> String {
    let entries = counted(verdict.entries, "entry", "entries");
    let journals = counted(verdict.executions, "journal", "journals");
    format!("{entries} of {journals}, {}", counted(verdict.checkpoints, "checkpoint", "checkpoints"))
}

/// What an intact verdict does not cover.
fn left_open(verdict: &VerificationReport) -> Vec<String> {
    let mut sentences = Vec::new();
    let entries = |count| counted(count, "entry", "entries");
    if verdict.assurance > Assurance::ChainOnly && verdict.unprotected() > 0 {
        let newest = entries(verdict.unprotected());
        sentences.push(format!("the newest {newest}, which no checkpoint covers yet: a change or a truncation there"));
    }
    if verdict.erased > 0 {
        let payloads = counted(verdict.erased, "erased payload", "erased payloads");
        sentences.push(format!("{payloads}; the journal \"ledger\" records what was erased on purpose"));
    }
    if verdict.removed > 0 {
        sentences.push(format!("{} that were cleaned up: only their hashes remain", entries(verdict.removed)));
    }
    sentences
}
