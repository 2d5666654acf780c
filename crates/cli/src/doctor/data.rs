//! The data directory, the database in it, its clock and its journal.

use super::DoctorCheck;
use crate::clock;
use crate::config::Config;
use crate::db::sized;
use crate::failure::CommandFailure;
use crate::owner;
use rutter_app::keys;
use rutter_core::id::TenantId;
use rutter_core::journal::note::SignedNote;
use rutter_core::journal::verify::TrustAnchors;
use rutter_core::limits;
use rutter_core::port::Error;
use rutter_core::port::query::{EntryFilter, ExecutionFilter, Pagination};
use rutter_core::time::Timestamp;
use rutter_core::time::calendar::utc;
use rutter_store::SqliteArchive;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// With less free space, the disk is about to be full.
const FREE_BYTES_MIN: u64 = 256 << 20;
/// Ledgers up to this size are verified completely; of larger ones only the newest signature.
const ENTRIES_CHECKED_MAX: u64 = 50_000;
/// The first of January 2026: this program did not exist before.
const PAST: Timestamp = Timestamp(1_767_225_600_000);
/// How far entries may be ahead of the clock; beyond this, the clock was set back.
const AHEAD_MS_MAX: i64 = 120_000;

pub(super) fn look(config: &Config, who: Option<&Value>, checks: &mut Vec<DoctorCheck>) {
    let directory = &config.directory;
    if !directory_of(directory, checks) {
        return;
    }
    permissions(directory, checks);
    let mut archive = match SqliteArchive::open(directory) {
        Ok(archive) => archive,
        Err(Error::NotFound { .. }) => {
            checks
                .push(DoctorCheck::fine("database", "there is none yet; the first command that needs one creates it"));
            clock(None, checks);
            return;
        }
        Err(error) => {
            let (message, error) = (error.to_string(), anyhow::Error::from(error));
            let fix = CommandFailure::of(&error).hint().unwrap_or("`rutter db migrate` migrates it").to_owned();
            checks.push(DoctorCheck::failed("database", message, fix));
            return;
        }
    };
    owner(directory, &mut archive, who, checks);
    journal(archive, checks);
}

/// Checks that the directory is writable, or can be created.
fn directory_of(directory: &Path, checks: &mut Vec<DoctorCheck>) -> bool {
    let name = directory.display();
    let Some(there) = directory.ancestors().find(|path| path.is_dir() || path.as_os_str().is_empty()) else {
        checks.push(DoctorCheck::failed(
            "data directory",
            format!("{name} cannot be created"),
            "choose another with --dir",
        ));
        return false;
    };
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    if let Err(error) = tempfile::Builder::new().prefix(".rutter-").tempfile_in(there) {
        let fix = format!("make {} writable for you, or choose another directory with --dir", there.display());
        checks.push(DoctorCheck::failed(
            "data directory",
            format!("{} is not writable: {error}", there.display()),
            fix,
        ));
        return false;
    }
    let free = rustix::fs::statvfs(there).map_or(u64::MAX, |found| found.f_bavail.saturating_mul(found.f_frsize));
    let is_new = if directory.is_dir() { "" } else { ", not created yet" };
    let message = format!("{name}{is_new}, {} free", sized(free));
    checks.push(match free < FREE_BYTES_MIN {
        true => DoctorCheck::doubtful("data directory", message, "free disk space before the disk is full"),
        false => DoctorCheck::fine("data directory", message),
    });
    true
}

/// Checks that no other user can read the secret files.
fn permissions(directory: &Path, checks: &mut Vec<DoctorCheck>) {
    let names = [keys::AGENT, keys::OPERATOR, "seal.key", "ledger.key", "rutter.sock"];
    let open: Vec<String> = names
        .iter()
        .map(|name| directory.join(name))
        .filter(|path| fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0))
        .map(|path| path.display().to_string())
        .collect();
    checks.push(match open.is_empty() {
        true => DoctorCheck::fine("keys and tokens", "only you can read them"),
        false => DoctorCheck::failed(
            "keys and tokens",
            format!("others can read {}", open.join(", ")),
            format!("chmod go= {}; remove tokens that may have been read, to get new ones", open.join(" ")),
        ),
    });
}

fn owner(directory: &Path, archive: &mut SqliteArchive, who: Option<&Value>, checks: &mut Vec<DoctorCheck>) {
    let left = under_way(archive);
    let schema = archive.stats().map_or_else(|_| String::new(), |stats| format!("schema {}, ", stats.schema));
    checks.push(match (who, owner::holder(directory)) {
        (Some(who), _) => DoctorCheck::fine("database", format!("{schema}owned by process {}", who["pid"])),
        (None, None) if left > 0 => DoctorCheck::doubtful(
            "database",
            format!("{schema}not in use, and {left} execution(s) that are under way stand still"),
            "`rutter serve` carries them on",
        ),
        (None, None) => DoctorCheck::fine("database", format!("{schema}not in use")),
        (None, Some(pid)) => DoctorCheck::doubtful(
            "database",
            format!("{schema}owned by process {pid}, which does not reply"),
            "it may be starting or stopping: check again in a minute; if it stays so, end that process",
        ),
    });
}

/// How many executions only a process of Rutter carries on, of the newest.
fn under_way(archive: &mut SqliteArchive) -> usize {
    let filter = ExecutionFilter { statuses: owner::UNDER_WAY.to_vec(), ..ExecutionFilter::default() };
    let tenants = archive.tenants().unwrap_or_default();
    let of_tenant = |tenant| archive.executions(tenant, &filter, &Pagination::first(limits::PAGE_MAX)).ok();
    let listed = tenants.iter().filter_map(of_tenant).flat_map(|page| page.items);
    listed.filter(|found| owner::needs_a_process(&found.row)).count()
}

fn journal(mut archive: SqliteArchive, checks: &mut Vec<DoctorCheck>) {
    let newest = archive.tenants().unwrap_or_default().into_iter().filter_map(|tenant| {
        let listed = archive.entries(&tenant, EntryFilter::default(), &Pagination::first(1));
        listed.ok()?.items.first().map(|entry| entry.record.at)
    });
    let newest = newest.max();
    clock(newest, checks);
    for tenant in archive.tenants().unwrap_or_default() {
        checks.push(match verified(&mut archive, &tenant) {
            Ok(message) => DoctorCheck::fine(&format!("journal of {tenant}"), message),
            Err(text) => DoctorCheck::failed(
                &format!("journal of {tenant}"),
                text,
                "copy the directory and run `rutter journal verify`",
            ),
        });
    }
}

fn verified(archive: &mut SqliteArchive, tenant: &TenantId) -> Result<String, String> {
    let text = |error: Error| error.to_string();
    let stats = archive.stats().map_err(text)?;
    let entries = stats.tenants.iter().find(|stats| stats.tenant == *tenant).map_or(0, |stats| stats.entries);
    let keys: Vec<_> = archive.public_key().map_err(text)?.into_iter().collect();
    if entries <= ENTRIES_CHECKED_MAX {
        let trust = TrustAnchors { keys, ..TrustAnchors::default() };
        let checked = archive.verify(tenant, trust, false, &mut |_| {}).map_err(text)?;
        return match checked.is_clean() {
            true => Ok(format!("all {entries} entries verify")),
            false => Err(format!("something is wrong among its {entries} entries")),
        };
    }
    let Some(checkpoint) = archive.checkpoint(tenant).map_err(text)? else {
        return Ok(format!("{entries} entries, none signed yet"));
    };
    let note = SignedNote::parse(&checkpoint).map_err(|error| error.to_string())?;
    note.verify(&keys).map_err(|error| format!("the newest checkpoint: {error}"))?;
    Ok(format!("the newest checkpoint verifies; `rutter journal verify` checks all {entries} entries"))
}

fn clock(newest: Option<Timestamp>, checks: &mut Vec<DoctorCheck>) {
    let now = clock::now();
    checks.push(match newest {
        _ if now < PAST => DoctorCheck::failed("clock", format!("it says {}", utc(now)), "set the clock"),
        Some(newest) if newest.0 > now.0 + AHEAD_MS_MAX => DoctorCheck::failed(
            "clock",
            format!("it says {}, and the journal has an entry of {}", utc(now), utc(newest)),
            "the clock was set back: correct it before executions continue",
        ),
        _ => DoctorCheck::fine("clock", utc(now)),
    });
}
