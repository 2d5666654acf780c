//! Where an answer is written that may be large or is to be kept: stdout, or a file that appears whole.

use crate::args::journal::OutArgs;
use crate::failure::Refusal;
use anyhow::Context;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) enum Outlet {
    Stdout(BufWriter<io::Stdout>),
    File(WholeFile),
}

/// A file that has its name only when it is finished.
#[derive(Debug)]
pub(crate) struct WholeFile {
    writer: BufWriter<File>,
    unfinished: PathBuf,
    path: PathBuf,
}

impl Outlet {
    pub(crate) fn open(args: &OutArgs) -> anyhow::Result<Outlet> {
        let Some(path) = &args.out else { return Ok(Outlet::Stdout(BufWriter::new(io::stdout()))) };
        if path.exists() && !args.force {
            let message = format!("{} exists already", path.display());
            return Err(Refusal::new("file.exists", message).with_hint("--force overwrites it").into());
        }
        let mut unfinished = path.clone().into_os_string();
        unfinished.push(".unfinished");
        let unfinished = PathBuf::from(unfinished);
        let file = File::create(&unfinished).with_context(|| cannot_write(path))?;
        Ok(Outlet::File(WholeFile { writer: BufWriter::new(file), unfinished, path: path.clone() }))
    }

    /// Everything is where it belongs when this returns.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        match self {
            Outlet::Stdout(mut writer) => writer.flush()?,
            Outlet::File(mut file) => {
                let finish = |file: &mut WholeFile| -> io::Result<()> {
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

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Outlet::Stdout(writer) => writer.write(bytes),
            Outlet::File(file) => file.writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Outlet::Stdout(writer) => writer.flush(),
            Outlet::File(file) => file.writer.flush(),
        }
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        // Renamed if it was finished; otherwise nobody wants it.
        let _ = fs::remove_file(&self.unfinished);
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
