//! Arguments of `rutter key` and `rutter open`.

use super::run::ToolSourceArgs;
use super::{DatabaseArgs, EXIT_CODES, TenantArgs};
use clap::{Args as Options, Subcommand};
use rutter_app::auth::AccessScope;
use rutter_core::time::Millis;

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a key for a program or person to authenticate with over HTTP; its secret is printed only once
    #[command(after_help = EXIT_CODES)]
    Create(KeyCreateArgs),
    /// List the keys, their scopes, and when they were last used
    #[command(after_help = EXIT_CODES)]
    List(KeyListArgs),
    /// Revoke a key, and every session that was begun with it
    #[command(after_help = EXIT_CODES)]
    Revoke(KeyRevokeArgs),
}

#[derive(Debug, Options)]
pub(crate) struct KeyCreateArgs {
    /// The name of its owner in journals
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: String,
    /// What it may do: read, operate, approve or admin; may be given several times
    #[arg(long = "scope", value_name = "SCOPE", required = true, value_delimiter = ',')]
    pub(crate) scopes: Vec<AccessScope>,
    /// How long it is valid, such as 12h or 90d [default: until it is revoked]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) expires: Option<Millis>,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct KeyListArgs {
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct KeyRevokeArgs {
    /// The key's id, from `rutter key list`
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct OpenBrowserArgs {
    /// Only print the link; open no browser
    #[arg(long)]
    pub(crate) print: bool,
    #[command(flatten)]
    pub(crate) tools: ToolSourceArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

fn span(text: &str) -> Result<Millis, String> {
    let expected = || "expected a span such as 30m, 12h or 90d".to_owned();
    Millis::parse(text).filter(|span| span.0 > 0).ok_or_else(expected)
}
