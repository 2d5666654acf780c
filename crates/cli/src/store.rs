//! Opens the database: to read it, which is always possible, or to own it.

use crate::args::DatabaseArgs;
use crate::clock;
use crate::config::Config;
use crate::failure::CommandRefusal;
use rutter_core::id::TenantId;
use rutter_core::limits::PAGE_MAX;
use rutter_core::port::Error;
use rutter_core::port::query::PageWalk;
use rutter_core::port::register::{RegisterItem, RegisterKind};
use rutter_store::{SqliteArchive, SqliteOptions, SqliteStore};
use std::sync::Arc;

pub(crate) fn config(args: &DatabaseArgs) -> Result<Config, CommandRefusal> {
    Config::load(args)
}

/// Opens the database for reading; the process that owns it continues.
pub(crate) fn archive(args: &DatabaseArgs) -> anyhow::Result<SqliteArchive> {
    Ok(SqliteArchive::open(&config(args)?.directory)?)
}

/// Opens the database for writing, if it exists and no other process owns it.
pub(crate) fn owned(config: &Config) -> Result<SqliteStore, Error> {
    SqliteArchive::open(&config.directory)?;
    SqliteStore::open(options(config))
}

/// The definitions of tools that were known last: none if there is no database that can be read.
pub(crate) fn known_definitions(config: &Config) -> Vec<RegisterItem> {
    let (tenant, mut known, mut walk) = (TenantId::new("default"), Vec::new(), PageWalk::new(PAGE_MAX));
    let Ok(mut archive) = SqliteArchive::open(&config.directory) else { return known };
    while let Some(page) = walk.next_page() {
        match archive.register(&tenant, RegisterKind::Definition, &page) {
            Ok(found) => known.extend(walk.take(found)),
            Err(_) => break,
        }
    }
    known
}

pub(crate) fn options(config: &Config) -> SqliteOptions {
    SqliteOptions::new(&config.directory, Arc::new(clock::now))
}

/// Refuses a tenant without entries, and names the existing ones.
pub(crate) fn check_tenant(archive: &SqliteArchive, tenant: &TenantId) -> anyhow::Result<()> {
    let tenants = archive.tenants()?;
    if tenants.contains(tenant) {
        return Ok(());
    }
    let names: Vec<&str> = tenants.iter().map(TenantId::as_str).collect();
    let refusal = CommandRefusal::new("store.not_found", format!("there is no tenant {:?}", tenant.as_str()));
    Err(match names.as_slice() {
        [] => refusal.with_hint("this database is empty").into(),
        names => refusal.with_hint(format!("choose with --tenant: {}", names.join(", "))).into(),
    })
}
