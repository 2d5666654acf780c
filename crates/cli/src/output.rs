//! Where large output is written: to stdout, or atomically to a file.

use crate::args::journal::OutputArgs;
use crate::failure::CommandRefusal;
use anyhow::Context;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) enum CommandOutput {
    Stdout(BufWriter<io::Stdout>),
    File(AtomicFile),
}

/// A file that gets its name when it is complete.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    writer: BufWriter<File>,
    unfinished: PathBuf,
    path: PathBuf,
}

impl CommandOutput {
    pub(crate) fn open(args: &OutputArgs) -> anyhow::Result<CommandOutput> {
        let Some(path) = &args.out else { return Ok(CommandOutput::Stdout(BufWriter::new(io::stdout()))) };
        if path.exists() && !args.force {
            let message = format!("{} already exists", path.display());
            return Err(CommandRefusal::new("file.exists", message).with_hint("--force overwrites it").into());
        }
        let mut unfinished = path.clone().into_os_string();
        unfinished.push(".unfinished");
        let unfinished = PathBuf::from(unfinished);
        let file = File::create(&unfinished).with_context(|| cannot_write(path))?;
        Ok(CommandOutput::File(AtomicFile { writer: BufWriter::new(file), unfinished, path: path.clone() }))
    }

    /// Everything is written when this returns.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        match self {
            CommandOutput::Stdout(mut writer) => writer.flush()?,
            CommandOutput::File(mut file) => {
                let finish = |file: &mut AtomicFile| -> io::Result<()> {
                    file.writer.flush()?;
                    file.writer.get_ref().sync_all()?;
                    fs::rename(&file.unfinished, &file.path)
                };
                finish(&mut file).with_context(|| cannot_write(&file.path))?;
            }
        }
        Ok(())
    }
}

impl Write for CommandOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            CommandOutput::Stdout(writer) => writer.write(bytes),
            CommandOutput::File(file) => file.writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            CommandOutput::Stdout(writer) => writer.flush(),
            CommandOutput::File(file) => file.writer.flush(),
        }
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // Renamed if it is complete; otherwise it is of no use.
        let _ = fs::remove_file(&self.unfinished);
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
