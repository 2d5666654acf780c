//! `rutter completions`: the script that teaches a shell our commands.

use crate::Exit;
use crate::args::Args;
use crate::terminal::Terminal;
use clap::CommandFactory;
use clap_complete::Shell;

pub(crate) fn run(shell: Shell, terminal: &Terminal) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "rutter", &mut script);
    terminal.answer(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
