//! One file with settings: read, checked, and refused with the line that is wrong.

use super::leaf::{Leaf, leaves};
use super::outward::{TelemetryConfig, WebhooksConfig};
use super::server::ServerConfig;
use crate::failure::Refusal;
use rutter_core::plan::wording::{guess, quoted};
use rutter_core::time::Millis;
use rutter_tools::config::{Alerts, Channel, Limits, command, http, mcp, secret};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml_edit::{Document, Item, Key, TableLike};

/// What a file says; `None` where it says nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) path: PathBuf,
    pub(super) is_there: bool,
    /// Everything it says, one by one.
    pub(super) leaves: Vec<Leaf>,
    pub(super) dir: Option<PathBuf>,
    pub(super) payloads: Option<Option<Millis>>,
    pub(super) executions: Option<Option<Millis>>,
    pub(super) tools: Tools,
}

/// What a file says about tools, apart from everything else in it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tools {
    dir: IgnoredAny,
    retention: IgnoredAny,
    pub(super) servers: BTreeMap<String, mcp::Server>,
    pub(super) http: BTreeMap<String, http::Server>,
    pub(super) commands: BTreeMap<String, command::Server>,
    pub(super) secrets: BTreeMap<String, secret::Source>,
    pub(super) limits: Option<Limits>,
    pub(super) notify: BTreeMap<String, Channel>,
    pub(super) alerts: Alerts,
    pub(super) server: Option<ServerConfig>,
    pub(super) webhooks: Option<WebhooksConfig>,
    pub(super) telemetry: Option<TelemetryConfig>,
}

impl Settings {
    /// A file that somebody named must be there.
    pub(super) fn load_named(path: &Path) -> Result<Settings, Refusal> {
        match path.exists() {
            true => Settings::load(path),
            false => Err(Refusal::new("file.unreadable", format!("there is no file {}", path.display()))),
        }
    }

    /// A file that is not there says nothing.
    pub(super) fn load(path: &Path) -> Result<Settings, Refusal> {
        match fs::read_to_string(path) {
            Ok(text) => Text { path, text: &text }.read(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Settings { path: path.to_owned(), ..Settings::default() })
            }
            Err(error) => {
                let message = format!("cannot read {}: {error}", path.display());
                Err(Refusal::new("file.unreadable", message))
            }
        }
    }
}

/// A file under way; knows where its lines are.
struct Text<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Text<'_> {
    fn read(&self) -> Result<Settings, Refusal> {
        let document = Document::parse(self.text)
            .map_err(|error| self.wrong(error.span(), &error.message().replace('\n', ", ")))?;
        let mut settings = Settings { path: self.path.to_owned(), is_there: true, ..Settings::default() };
        let top = document.as_table();
        settings.leaves = leaves(top, &|place| self.line(place));
        let names = [
            "dir",
            "retention",
            "servers",
            "http",
            "commands",
            "secrets",
            "limits",
            "notify",
            "alerts",
            "server",
            "webhooks",
            "telemetry",
        ];
        for (key, item) in self.known(top, &names)? {
            match key {
                "dir" => settings.dir = Some(self.directory(item)?),
                "retention" => {
                    let table = item.as_table_like();
                    let table = table.ok_or_else(|| self.wrong(item.span(), "retention must be a table"))?;
                    self.read_retention(table, &mut settings)?;
                }
                _ => {}
            }
        }
        settings.tools = Tools::deserialize(toml_edit::de::Deserializer::from(document))
            .map_err(|error| self.wrong(error.span(), &error.message().replace('\n', ", ")))?;
        Ok(settings)
    }

    fn read_retention(&self, table: &dyn TableLike, settings: &mut Settings) -> Result<(), Refusal> {
        for (key, item) in self.known(table, &["payloads", "executions"])? {
            let age = Some(self.age(key, item)?);
            match key {
                "payloads" => settings.payloads = age,
                _ => settings.executions = age,
            }
        }
        Ok(())
    }

    /// The entries of a table, all of whose keys must be known.
    fn known<'t>(
        &self,
        table: &'t dyn TableLike,
        names: &[&'static str],
    ) -> Result<Vec<(&'static str, &'t Item)>, Refusal> {
        let mut entries = Vec::new();
        for (key, item) in table.iter() {
            match names.iter().find(|name| **name == key) {
                Some(name) => entries.push((*name, item)),
                None => {
                    let place = table.get_key_value(key).and_then(|(key, _)| Key::span(key)).or(item.span());
                    let refusal = self.wrong(place, &format!("there is no setting {}", quoted(key)));
                    let meant = guess(key, names.iter().copied()).map(|guess| guess.word());
                    return Err(match meant {
                        Some(word) => refusal.with_hint(format!("did you mean {}?", quoted(word))),
                        None => refusal.with_hint(format!("there are: {}", names.join(", "))),
                    });
                }
            }
        }
        Ok(entries)
    }

    /// A relative directory starts at the file that names it.
    fn directory(&self, item: &Item) -> Result<PathBuf, Refusal> {
        match item.as_str() {
            Some(text) if !text.is_empty() => Ok(self.path.parent().unwrap_or(Path::new("")).join(text)),
            _ => Err(self.wrong(item.span(), "dir must be the path of a directory, as a text")),
        }
    }

    fn age(&self, name: &str, item: &Item) -> Result<Option<Millis>, Refusal> {
        match item.as_str() {
            Some("never") => Ok(None),
            text => text.and_then(Millis::parse).map(Some).ok_or_else(|| {
                self.wrong(item.span(), &format!("{name} must be an age such as \"90d\", or \"never\""))
            }),
        }
    }

    fn wrong(&self, place: Option<Range<usize>>, what: &str) -> Refusal {
        let line = self.line(place);
        Refusal::new("config.invalid", format!("{}, line {line}: {what}", self.path.display()))
    }

    /// Counted from 1.
    fn line(&self, place: Option<Range<usize>>) -> usize {
        let start = place.map_or(0, |place| place.start.min(self.text.len()));
        self.text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings, String> {
        Text { path: Path::new("conf/rutter.toml"), text }.read().map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn settings_are_read() {
        let table = "dir = \"data\" # here\n[retention]\npayloads = \"90d\"\nexecutions = \"never\"\n";
        let inline = "dir = \"data\"\nretention = { payloads = \"90d\", executions = \"never\" }";
        for text in [table, inline] {
            let Settings { dir, payloads, executions, tools, leaves, .. } = read(text).unwrap();
            assert_eq!(dir, Some("conf/data".into()));
            assert_eq!((payloads, executions), (Some(Some(Millis::hours(24 * 90))), Some(None)));
            assert!(tools.servers.is_empty() && tools.limits.is_none());
            let said: Vec<String> = leaves.iter().map(Leaf::key).collect();
            assert_eq!(said, ["dir", "retention.payloads", "retention.executions"]);
            assert_eq!(leaves[2].line, if text == table { 4 } else { 2 });
        }
        assert_eq!(read("").unwrap().dir, None);
        assert_eq!(read("dir = \"/data\"").unwrap().dir, Some("/data".into()));
    }

    #[test]
    fn tools_are_read_beside_the_rest() {
        let text = "dir = 'x'\n[servers.git]\ncommand = 'mcp-server-git'\n[limits]\ncalls = 3\n[secrets]\nt = { env = 'T' }";
        let tools = read(text).unwrap().tools;
        assert_eq!(tools.servers.keys().collect::<Vec<_>>(), ["git"]);
        assert_eq!(tools.limits.unwrap().calls, 3);
        assert_eq!(tools.secrets.len(), 1);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, line) in [
            ("\ndirr = 'x'", 2),
            ("dir = 7", 1),
            ("dir = ''", 1),
            ("\n\n[retention]\npayload = '1d'", 4),
            ("[retention]\npayloads = 90", 2),
            ("[retention]\npayloads = '90 days'", 2),
            ("retention = 'never'", 1),
            ("dir = 'x'\ndir = 'y'", 2),
            ("dir = 'x", 1),
            ("[servers.git]\ncommand = 'a'\nurl = 'http://x'", 1),
            ("[servers.git]\ncommand = 'a'\nargz = []", 3),
            ("[limits]\n\ncals = 3", 3),
            ("[secrets]\nt = { envv = 'T' }", 2),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(&format!("conf/rutter.toml, line {line}: ")), "{text:?}: {error}");
        }
    }
}
