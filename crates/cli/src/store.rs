//! Getting at the database: to read it, which anybody may at any time, or to own it.

use crate::args::StoreArgs;
use crate::clock;
use crate::config::Config;
use crate::failure::Refusal;
use rutter_core::id::TenantId;
use rutter_core::port::Error;
use rutter_store::{Archive, Options, Store};
use std::sync::Arc;

pub(crate) fn config(args: &StoreArgs) -> Result<Config, Refusal> {
    Config::load(args)
}

/// Opens the database for reading; whoever owns it goes on.
pub(crate) fn archive(args: &StoreArgs) -> anyhow::Result<Archive> {
    Ok(Archive::open(&config(args)?.directory)?)
}

/// Opens the database for writing, if it is there and nobody else has it.
pub(crate) fn owned(config: &Config) -> Result<Store, Error> {
    Archive::open(&config.directory)?;
    Store::open(options(config))
}

pub(crate) fn options(config: &Config) -> Options {
    Options::new(&config.directory, Arc::new(clock::now))
}

/// Refuses a tenant that nothing was ever written for, and says which there are.
pub(crate) fn check_tenant(archive: &Archive, tenant: &TenantId) -> anyhow::Result<()> {
    let tenants = archive.tenants()?;
    if tenants.contains(tenant) {
        return Ok(());
    }
    let names: Vec<&str> = tenants.iter().map(TenantId::as_str).collect();
    let refusal = Refusal::new("store.not_found", format!("there is no tenant {:?}", tenant.as_str()));
    Err(match names.as_slice() {
        [] => refusal.with_hint("nothing was written to this database yet").into(),
        names => refusal.with_hint(format!("choose with --tenant: {}", names.join(", "))).into(),
    })
}
