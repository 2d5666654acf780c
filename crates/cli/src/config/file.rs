//! A settings file: read and checked; errors name the line.

use super::outward::{TelemetryConfig, WebhooksConfig};
use super::server::ServerConfig;
use super::setting::{FileSetting, leaves};
use crate::failure::CommandRefusal;
use rutter_core::policy::OperatorPolicy;
use rutter_core::policy::rule::{PolicyLimitsDraft, PolicyRuleDraft};
use rutter_core::time::Millis;
use rutter_core::wording::{guess, quoted};
use rutter_tools::config::{AlertSettings, CallLimits, NotificationChannel, command, http, mcp, secret};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml_edit::{Document, Item, Key, TableLike};

/// The settings of a file; `None` where it has none.
#[derive(Clone, Debug, Default)]
pub(super) struct FileSettings {
    pub(super) path: PathBuf,
    pub(super) is_there: bool,
    /// Every single setting.
    pub(super) leaves: Vec<FileSetting>,
    pub(super) dir: Option<PathBuf>,
    pub(super) payloads: Option<Option<Millis>>,
    pub(super) executions: Option<Option<Millis>>,
    pub(super) tools: FileToolSettings,
}

/// The settings about tools, apart from all others.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileToolSettings {
    dir: IgnoredAny,
    retention: IgnoredAny,
    pub(super) servers: BTreeMap<String, mcp::McpServerConfig>,
    pub(super) http: BTreeMap<String, http::HttpServerConfig>,
    pub(super) commands: BTreeMap<String, command::CommandServerConfig>,
    pub(super) secrets: BTreeMap<String, secret::SecretSource>,
    pub(super) limits: Option<CallLimits>,
    pub(super) notify: BTreeMap<String, NotificationChannel>,
    pub(super) alerts: AlertSettings,
    pub(super) server: Option<ServerConfig>,
    pub(super) webhooks: Option<WebhooksConfig>,
    pub(super) telemetry: Option<TelemetryConfig>,
    pub(super) policy: Vec<PolicyRuleDraft>,
    pub(super) policy_limits: PolicyLimitsDraft,
}

impl FileSettings {
    /// A file that the user named must exist.
    pub(super) fn load_named(path: &Path) -> Result<FileSettings, CommandRefusal> {
        match path.exists() {
            true => FileSettings::load(path),
            false => Err(CommandRefusal::new("file.unreadable", format!("there is no file {}", path.display()))),
        }
    }

    /// A missing file has no settings.
    pub(super) fn load(path: &Path) -> Result<FileSettings, CommandRefusal> {
        match fs::read_to_string(path) {
            Ok(text) => SettingsText { path, text: &text }.read(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(FileSettings { path: path.to_owned(), ..FileSettings::default() })
            }
            Err(error) => {
                let message = format!("cannot read {}: {error}", path.display());
                Err(CommandRefusal::new("file.unreadable", message))
            }
        }
    }
}

/// The text of a file while it is read, with its lines.
struct SettingsText<'a> {
    path: &'a Path,
    text: &'a str,
}

impl SettingsText<'_> {
    fn read(&self) -> Result<FileSettings, CommandRefusal> {
        let document = Document::parse(self.text)
            .map_err(|error| self.wrong(error.span(), &error.message().replace('\n', ", ")))?;
        let mut settings = FileSettings { path: self.path.to_owned(), is_there: true, ..FileSettings::default() };
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
            "policy",
            "policy_limits",
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
        let rules = top.get("policy").map(rule_spans).unwrap_or_default();
        settings.tools = FileToolSettings::deserialize(toml_edit::de::Deserializer::from(document))
            .map_err(|error| self.wrong(error.span(), &error.message().replace('\n', ", ")))?;
        OperatorPolicy::read(&settings.tools.policy).map_err(|error| {
            self.wrong(rules.get(error.at).cloned().flatten(), &format!("policy: {error}"))
                .with_hint("docs/policy.md describes the fields of a rule")
        })?;
        Ok(settings)
    }

    fn read_retention(&self, table: &dyn TableLike, settings: &mut FileSettings) -> Result<(), CommandRefusal> {
        for (key, item) in self.known(table, &["payloads", "executions"])? {
            let age = Some(self.age(key, item)?);
            match key {
                "payloads" => settings.payloads = age,
                _ => settings.executions = age,
            }
        }
        Ok(())
    }

    /// Returns the entries of a table, whose keys must all be known.
    fn known<'t>(
        &self,
        table: &'t dyn TableLike,
        names: &[&'static str],
    ) -> Result<Vec<(&'static str, &'t Item)>, CommandRefusal> {
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

    /// A relative directory is relative to the file.
    fn directory(&self, item: &Item) -> Result<PathBuf, CommandRefusal> {
        match item.as_str() {
            Some(text) if !text.is_empty() => Ok(self.path.parent().unwrap_or(Path::new("")).join(text)),
            _ => Err(self.wrong(item.span(), "dir must be the path of a directory, as a string")),
        }
    }

    fn age(&self, name: &str, item: &Item) -> Result<Option<Millis>, CommandRefusal> {
        match item.as_str() {
            Some("never") => Ok(None),
            text => text.and_then(Millis::parse).map(Some).ok_or_else(|| {
                self.wrong(item.span(), &format!("{name} must be an age such as \"90d\", or \"never\""))
            }),
        }
    }

    fn wrong(&self, place: Option<Range<usize>>, what: &str) -> CommandRefusal {
        let line = self.line(place);
        CommandRefusal::new("config.invalid", format!("{}, line {line}: {what}", self.path.display()))
    }

    /// Counted from 1.
    fn line(&self, place: Option<Range<usize>>) -> usize {
        let start = place.map_or(0, |place| place.start.min(self.text.len()));
        self.text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

/// Where each rule of the policy stands.
fn rule_spans(item: &Item) -> Vec<Option<Range<usize>>> {
    match (item.as_array_of_tables(), item.as_array()) {
        (Some(tables), _) => tables.iter().map(|table| table.span()).collect(),
        (None, Some(values)) => values.iter().map(|value| value.span()).collect(),
        (None, None) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<FileSettings, String> {
        SettingsText { path: Path::new("conf/rutter.toml"), text }.read().map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn rules_of_the_policy_are_read_and_misspelt_ones_refused() {
        let rules = "[[policy]]\nname = \"money\"\ntools = [\"payments.*\"]\nwhen = \"parameters.amount > 100\"\n\
            approval = { by = [\"ada\"], expires = \"24h\" }\n[[policy]]\nsafety = [\"once\"]\nlimit = { calls = 20, per = \"1h\" }\n";
        let read_rules = read(rules).unwrap().tools.policy;
        assert_eq!(read_rules.len(), 2);
        assert_eq!(read_rules[0].name.as_deref(), Some("money"));
        assert_eq!(read_rules[1].limit.as_ref().unwrap().calls, 20);
        let wrong = read("[[policy]]\ntool = [\"a\"]\ndeny = \"no\"\n").unwrap_err();
        assert!(wrong.contains("line 2") && wrong.contains("tool"), "{wrong}");
        let wrong = read("[[policy]]\ndeny = \"no\"\n\n[[policy]]\nname = \"two\"\n").unwrap_err();
        assert!(wrong.contains("line 4: policy: two: a rule needs one of"), "{wrong}");
    }

    #[test]
    fn limits_of_the_policy_are_read_and_bad_ones_refused() {
        for (text, expected) in [("", None), ("ask_again_max = 0", Some(0)), ("ask_again_max = 1", Some(1))] {
            let limits = read(&format!("[policy_limits]\n{text}\n")).unwrap().tools.policy_limits;
            assert_eq!(limits.ask_again_max, expected, "{text:?}");
        }
        assert_eq!(read("").unwrap().tools.policy_limits.ask_again_max, None);
        for text in ["ask_again_max = -1", "ask_again_max = \"three\"", "ask_again = 1"] {
            let wrong = read(&format!("[policy_limits]\n{text}\n")).unwrap_err();
            assert!(wrong.starts_with("conf/rutter.toml, line 2: "), "{wrong}");
        }
    }

    #[test]
    fn the_examples_of_the_page_about_the_policy_are_rules() {
        let page = include_str!("../../../../docs/policy.md");
        let examples: Vec<&str> = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(examples.len() >= 4, "{examples:?}");
        for example in examples {
            let rules = read(example).unwrap_or_else(|wrong| panic!("{wrong}\n{example}")).tools.policy;
            let policy = rutter_core::policy::OperatorPolicy::read(&rules);
            let has_limits = example.contains("[policy_limits]");
            assert!(policy.is_ok_and(|policy| has_limits || !policy.is_empty()), "{example}");
        }
    }

    #[test]
    fn settings_are_read() {
        let table = "dir = \"data\" # here\n[retention]\npayloads = \"90d\"\nexecutions = \"never\"\n";
        let inline = "dir = \"data\"\nretention = { payloads = \"90d\", executions = \"never\" }";
        for text in [table, inline] {
            let FileSettings { dir, payloads, executions, tools, leaves, .. } = read(text).unwrap();
            assert_eq!(dir, Some("conf/data".into()));
            assert_eq!((payloads, executions), (Some(Some(Millis::hours(24 * 90))), Some(None)));
            assert!(tools.servers.is_empty() && tools.limits.is_none());
            let lines: Vec<String> = leaves.iter().map(FileSetting::key).collect();
            assert_eq!(lines, ["dir", "retention.payloads", "retention.executions"]);
            assert_eq!(leaves[2].line, if text == table { 4 } else { 2 });
        }
        assert_eq!(read("").unwrap().dir, None);
        assert_eq!(read("dir = \"/data\"").unwrap().dir, Some("/data".into()));
    }

    #[test]
    fn tools_are_read_along_with_the_rest() {
        let text =
            "dir = 'x'\n[servers.git]\ncommand = 'mcp-server-git'\n[limits]\ncalls = 3\n[secrets]\nt = { env = 'T' }";
        let tools = read(text).unwrap().tools;
        assert_eq!(tools.servers.keys().collect::<Vec<_>>(), ["git"]);
        assert_eq!(tools.limits.unwrap().calls, 3);
        assert_eq!(tools.secrets.len(), 1);
    }

    #[test]
    fn errors_name_their_line() {
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
