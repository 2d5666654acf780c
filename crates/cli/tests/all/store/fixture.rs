//! A database to try commands on, and the commands.

use crate::fixture::RUTTER;
use crate::store::sample_database;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The output of a command.
#[derive(Debug)]
pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A test's own directory, with the database in `data`.
#[derive(Debug)]
pub struct StoreFixture {
    place: TempDir,
}

impl StoreFixture {
    /// With the sample database.
    pub fn new() -> StoreFixture {
        let fixture = StoreFixture::empty();
        fs::create_dir(fixture.data()).unwrap();
        sample_database::write(&fixture.data());
        fixture
    }

    /// No database at all.
    pub fn empty() -> StoreFixture {
        StoreFixture { place: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).unwrap();
        name.to_owned()
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs a command in the test's directory, where `rutter.toml` would be found.
    pub fn rutter(&self, arguments: &[&str]) -> Answer {
        self.rutter_with(arguments, &[("RUTTER_DIR", "data")])
    }

    pub fn rutter_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Answer {
        finish(self.command(arguments).env_remove("RUTTER_DIR").envs(variables.iter().copied()))
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(RUTTER);
        command.args(arguments).current_dir(self.place.path()).env_clear();
        command.env("LC_ALL", "C.UTF-8").env("RUTTER_DIR", "data");
        command
    }

    /// The whole output, without what differs each time.
    pub fn seen(&self, arguments: &[&str]) -> String {
        let Answer { code, stdout, stderr } = self.rutter(arguments);
        let stderr = if stderr.is_empty() { String::new() } else { format!("--- stderr\n{stderr}") };
        let text = format!("$ rutter {}\n{stdout}{stderr}--- exit {code}\n", arguments.join(" "));
        without_chance(&text.replace(self.place.path().to_str().unwrap(), "<place>"))
    }
}

fn finish(command: &mut Command) -> Answer {
    let output = command.stdin(Stdio::null()).output().unwrap();
    Answer {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Replaces what differs each time: times, hashes, keys, sizes and the number of checkpoints.
pub fn without_chance(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (length, visible) = next(rest);
        out.push_str(visible.unwrap_or(&rest[..length]));
        rest = &rest[length..];
    }
    out
}

/// The length of the next piece, and its replacement.
fn next(rest: &str) -> (usize, Option<&'static str>) {
    const TIME: &str = "0000-00-00T00:00:00.000Z";
    let first = rest.chars().next().unwrap().len_utf8();
    let is_time = rest.len() >= TIME.len()
        && rest.bytes().zip(TIME.bytes()).all(|(found, wanted)| match wanted {
            b'0' => found.is_ascii_digit(),
            _ => found == wanted,
        });
    if is_time {
        return (TIME.len(), Some("<time>"));
    }
    for counted in ["\"checkpoints\":", "\"lines\":", "\"bytes\":"] {
        if let Some(after) = rest.strip_prefix(counted) {
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            return (counted.len() + digits, Some("<counted>"));
        }
    }
    let is_in = |set: fn(char) -> bool| rest.find(|c| !set(c)).unwrap_or(rest.len());
    let base64 = is_in(|c| c.is_ascii_alphanumeric() || "+/=".contains(c));
    if base64 >= 44 && rest[..base64].contains(|c: char| c.is_ascii_uppercase()) {
        return (base64, Some("<base64>"));
    }
    let hex = is_in(|c| matches!(c, '0'..='9' | 'a'..='f'));
    if hex >= 8 {
        return (hex, Some("<hex>"));
    }
    let number = is_in(|c| c.is_ascii_digit() || c == '.');
    if number > 0 {
        let after = &rest[number..];
        let is_size = [" B\n", " B ", " B,", " KiB", " MiB", " GiB", " TiB"].iter().any(|unit| after.starts_with(unit));
        let is_count = after.starts_with(" checkpoint");
        let unit = after[1.min(after.len())..].find([' ', ',', '\n', ')']).map_or(0, |length| length + 1);
        return match (is_size, is_count) {
            (true, _) => (number + unit, Some("<size>")),
            (_, true) => (number, Some("<count>")),
            _ => (number, None),
        };
    }
    // A word stays as it is, whatever its last letters are.
    (is_in(|c| c.is_ascii_alphabetic()).max(first), None)
}
