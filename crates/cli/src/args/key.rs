//! What was typed after `rutter key` and `rutter open`.

use super::run::ToolArgs;
use super::{EXIT_CODES, StoreArgs, TenantArgs};
use clap::{Args as Options, Subcommand};
use rutter_core::time::Millis;
use rutter_server::auth::Scope;

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key for a program or person to come in with over HTTP; its secret is printed now and never again
    #[command(after_help = EXIT_CODES)]
    Create(KeyCreateArgs),
    /// List the keys, their rights, and when they were last used
    #[command(after_help = EXIT_CODES)]
    List(KeyListArgs),
    /// End a key, and every session that was begun with it
    #[command(after_help = EXIT_CODES)]
    Revoke(KeyRevokeArgs),
}

#[derive(Debug, Options)]
pub(crate) struct KeyCreateArgs {
    /// How journals call whoever comes with it
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: String,
    /// What it may do: read, operate, approve or admin; may be given several times
    #[arg(long = "scope", value_name = "SCOPE", required = true, value_delimiter = ',')]
    pub(crate) scopes: Vec<Scope>,
    /// How long it is good, such as 12h or 90d; without this, until it is revoked
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) expires: Option<Millis>,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct KeyListArgs {
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct KeyRevokeArgs {
    /// The key's id, as `rutter key list` has it
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct OpenArgs {
    /// Only print the link, and start no browser
    #[arg(long)]
    pub(crate) print: bool,
    #[command(flatten)]
    pub(crate) tools: ToolArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

impl KeyCommand {
    pub(crate) fn store(&self) -> &StoreArgs {
        match self {
            KeyCommand::Create(args) => &args.store,
            KeyCommand::List(args) => &args.store,
            KeyCommand::Revoke(args) => &args.store,
        }
    }
}

fn span(text: &str) -> Result<Millis, String> {
    let expected = || "expected a span such as 30m, 12h or 90d".to_owned();
    Millis::parse(text).filter(|span| span.0 > 0).ok_or_else(expected)
}
