//! `rutter completions`: the completion script of a shell.

use crate::args;
use crate::exit::CommandExit;
use crate::terminal::Terminal;
use clap_complete::Shell;

pub(crate) fn run(shell: Shell, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "rutter", &mut script);
    terminal.answer(&String::from_utf8_lossy(&script))?;
    Ok(CommandExit::Done)
}
