//! The Python for the tools and the checker: the program itself, not a script that searches for it.

use std::path::PathBuf;
use std::process::Command;

#[derive(Clone, Debug)]
pub(super) struct Interpreter {
    pub(super) program: PathBuf,
    /// The directory of its library.
    pub(super) home: PathBuf,
}

impl Interpreter {
    /// Finds it once: a name on the path may be a slow shell script.
    pub(super) fn find() -> Result<Interpreter, String> {
        let asked = ["-c", "import os, sys; print(os.path.realpath(sys.executable)); print(sys.base_prefix)"];
        let output = Command::new("python3").args(asked).output().map_err(|error| format!("python3: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match text.lines().collect::<Vec<_>>()[..] {
            [program, home] => Ok(Interpreter { program: program.into(), home: home.into() }),
            _ => Err(format!("python3 did not print its path: {text:?}")),
        }
    }
}
