//! The data directory, the database in it, its clock and its journal.

use super::Check;
use crate::clock;
use crate::config::Config;
use crate::db::sized;
use crate::failure::Failure;
use rutter_core::id::TenantId;
use rutter_core::journal::note::Note;
use rutter_core::journal::verify::Trust;
use rutter_core::port::Error;
use rutter_core::port::query::{EntryFilter, Page};
use rutter_core::time::Timestamp;
use rutter_core::time::calendar::utc;
use rutter_server::keys;
use rutter_store::Archive;
use serde_json::Value;
use std::fs::{self, File, TryLockError};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Less than this and a disk is about to be full.
const FREE_BYTES_MIN: u64 = 256 << 20;
/// Ledgers up to here are checked whole; of larger ones only the newest signature.
const ENTRIES_CHECKED_MAX: u64 = 50_000;
/// The first of January 2026: no clock of this program was ever before.
const PAST: Timestamp = Timestamp(1_767_225_600_000);
/// How far entries may be ahead of the clock before somebody must have set it.
const AHEAD_MS_MAX: i64 = 120_000;

pub(super) fn look(config: &Config, who: Option<&Value>, checks: &mut Vec<Check>) {
    let directory = &config.directory;
    if !directory_of(directory, checks) {
        return;
    }
    permissions(directory, checks);
    let archive = match Archive::open(directory) {
        Ok(archive) => archive,
        Err(Error::NotFound { .. }) => {
            checks.push(Check::fine(
                "database",
                "there is none yet; the first command that needs one makes it",
            ));
            clock(None, checks);
            return;
        }
        Err(error) => {
            let (said, error) = (error.to_string(), anyhow::Error::from(error));
            let fix =
                Failure::of(&error).hint().unwrap_or("`rutter db migrate` brings it up to date").to_owned();
            checks.push(Check::failed("database", said, fix));
            return;
        }
    };
    owner(directory, &archive, who, checks);
    journal(archive, checks);
}

/// Whether there is a directory that can be written, or could be one.
fn directory_of(directory: &Path, checks: &mut Vec<Check>) -> bool {
    let name = directory.display();
    let Some(there) = directory.ancestors().find(|path| path.is_dir() || path.as_os_str().is_empty()) else {
        checks.push(Check::failed(
            "data directory",
            format!("{name} cannot be made"),
            "name another with --dir",
        ));
        return false;
    };
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    if let Err(error) = tempfile::Builder::new().prefix(".rutter-").tempfile_in(there) {
        let fix = format!("let {} be written by you, or name another directory with --dir", there.display());
        checks.push(Check::failed(
            "data directory",
            format!("{} cannot be written: {error}", there.display()),
            fix,
        ));
        return false;
    }
    let free =
        rustix::fs::statvfs(there).map_or(u64::MAX, |found| found.f_bavail.saturating_mul(found.f_frsize));
    let is_new = if directory.is_dir() { "" } else { ", not made yet" };
    let said = format!("{name}{is_new}, {} free", sized(free));
    checks.push(match free < FREE_BYTES_MIN {
        true => Check::doubtful("data directory", said, "make room before the disk is full"),
        false => Check::fine("data directory", said),
    });
    true
}

/// Files that nobody else may read.
fn permissions(directory: &Path, checks: &mut Vec<Check>) {
    let names = [keys::AGENT, keys::OPERATOR, "seal.key", "ledger.key", "rutter.sock"];
    let open: Vec<String> = names
        .iter()
        .map(|name| directory.join(name))
        .filter(|path| fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0))
        .map(|path| path.display().to_string())
        .collect();
    checks.push(match open.is_empty() {
        true => Check::fine("keys and tokens", "only you can read them"),
        false => Check::failed(
            "keys and tokens",
            format!("others can read {}", open.join(", ")),
            format!("chmod go= {}; if somebody may have, remove tokens for new ones", open.join(" ")),
        ),
    });
}

fn owner(directory: &Path, archive: &Archive, who: Option<&Value>, checks: &mut Vec<Check>) {
    let schema = archive.stats().map_or_else(|_| String::new(), |stats| format!("schema {}, ", stats.schema));
    checks.push(match (who, holder(directory)) {
        (Some(who), _) => Check::fine("database", format!("{schema}process {} has it", who["pid"])),
        (None, None) => Check::fine("database", format!("{schema}nobody has it")),
        (None, Some(pid)) => Check::doubtful(
            "database",
            format!("{schema}process {pid} has it and does not answer"),
            "it may be starting or ending: look again in a minute; if it stays, end that process",
        ),
    });
}

/// The process that has the database, if one has.
fn holder(directory: &Path) -> Option<String> {
    let mut file = File::open(directory.join("rutter.lock")).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // Who has it may not have written its number yet.
            let _ = file.read_to_string(&mut pid);
            Some(pid.trim().to_owned())
        }
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

fn journal(mut archive: Archive, checks: &mut Vec<Check>) {
    let newest = archive.tenants().unwrap_or_default().into_iter().filter_map(|tenant| {
        let listed = archive.entries(&tenant, EntryFilter::default(), &Page::first(1));
        listed.ok()?.items.first().map(|entry| entry.record.at)
    });
    let newest = newest.max();
    clock(newest, checks);
    for tenant in archive.tenants().unwrap_or_default() {
        checks.push(match verified(&mut archive, &tenant) {
            Ok(said) => Check::fine(&format!("journal of {tenant}"), said),
            Err(said) => Check::failed(
                &format!("journal of {tenant}"),
                said,
                "keep a copy of the directory and see what `rutter journal verify` says",
            ),
        });
    }
}

fn verified(archive: &mut Archive, tenant: &TenantId) -> Result<String, String> {
    let text = |error: Error| error.to_string();
    let stats = archive.stats().map_err(text)?;
    let entries = stats.tenants.iter().find(|stats| stats.tenant == *tenant).map_or(0, |stats| stats.entries);
    let keys: Vec<_> = archive.public_key().map_err(text)?.into_iter().collect();
    if entries <= ENTRIES_CHECKED_MAX {
        let trust = Trust { keys, ..Trust::default() };
        let checked = archive.verify(tenant, trust, false, &mut |_| {}).map_err(text)?;
        return match checked.is_clean() {
            true => Ok(format!("all {entries} entries verify")),
            false => Err(format!("something is wrong among its {entries} entries")),
        };
    }
    let Some(checkpoint) = archive.checkpoint(tenant).map_err(text)? else {
        return Ok(format!("{entries} entries, none signed yet"));
    };
    let note = Note::parse(&checkpoint).map_err(|error| error.to_string())?;
    note.verify(&keys).map_err(|error| format!("the newest checkpoint: {error}"))?;
    Ok(format!("the newest checkpoint verifies; `rutter journal verify` checks all {entries} entries"))
}

fn clock(newest: Option<Timestamp>, checks: &mut Vec<Check>) {
    let now = clock::now();
    checks.push(match newest {
        _ if now < PAST => Check::failed("clock", format!("it says {}", utc(now)), "set the clock"),
        Some(newest) if newest.0 > now.0 + AHEAD_MS_MAX => Check::failed(
            "clock",
            format!("it says {}, and the journal has an entry of {}", utc(now), utc(newest)),
            "the clock was set back: set it right before anything goes on",
        ),
        _ => Check::fine("clock", utc(now)),
    });
}
