//! Converts other programs' lists of MCP servers to settings. Credentials become references: the value of a variable,
//! or a literal credential, is never copied.

use crate::config::setting::names_a_secret;
use rutter_core::redact::SECRET_CHARS_MIN;
use rutter_tools::config::mcp::import::{Error, import};
use rutter_tools::config::mcp::{McpServerConfig, McpTransport};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, value};

/// Marks a variable while a list is read.
const MARK: &str = "@@rutter:";
const MARK_END: &str = "@@";
/// Variables with locations and names, not credentials.
const PLAIN: &[&str] = &["HOME", "USER", "LOGNAME", "PWD", "PATH", "SHELL", "LANG", "TMPDIR"];

/// The servers of a list as settings.
#[derive(Debug, Default)]
pub(crate) struct ImportedServers {
    pub(crate) servers: BTreeMap<String, Table>,
    /// The variable that each secret comes from.
    pub(crate) secrets: BTreeMap<String, String>,
    /// What was omitted, and warnings.
    pub(crate) notes: Vec<String>,
}

/// As text for rutter.toml.
impl std::fmt::Display for ImportedServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut document = DocumentMut::new();
        let mut tables = Table::new();
        tables.set_implicit(true);
        for (name, table) in &self.servers {
            tables.insert(name, Item::Table(table.clone()));
        }
        document.insert("servers", Item::Table(tables));
        if !self.secrets.is_empty() {
            let mut secrets = Table::new();
            for (name, variable) in &self.secrets {
                secrets.insert(name, value(InlineTable::from_iter([("env", variable.as_str())])));
            }
            document.insert("secrets", Item::Table(secrets));
        }
        f.write_str(document.to_string().trim_start())
    }
}

impl ImportedServers {
    /// Adds the servers of another list; an existing server of the same name stays.
    pub(crate) fn add(&mut self, other: ImportedServers, from: &str) {
        for (name, table) in other.servers {
            match self.servers.entry(name) {
                Entry::Occupied(taken) => {
                    let name = taken.key();
                    self.notes.push(format!("server `{name}` of {from} was left out: another one has its name"));
                }
                Entry::Vacant(free) => {
                    free.insert(table);
                }
            }
        }
        self.secrets.extend(other.secrets);
        self.notes.extend(other.notes);
    }
}

/// Reads a list. `project` is the directory whose own servers count too, in files that list them by directory.
pub(crate) fn read(
    text: &str,
    project: Option<&Path>,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<ImportedServers, String> {
    let file: Value = jsonc_parser::parse_to_serde_value(text, &Default::default())
        .map_err(|error| format!("it is not valid JSON: {error}"))?;
    let own = project.map(|project| &file["projects"][project.to_string_lossy().as_ref()]["mcpServers"]);
    let lists = [Some(&file["mcpServers"]), Some(&file["servers"]), own];
    let entries: Vec<(&String, &Value)> = lists.into_iter().flatten().filter_map(Value::as_object).flatten().collect();
    let is_list = file.get("mcpServers").or(file.get("servers")).or(file.get("projects")).is_some();
    if !is_list {
        return Err("it has neither `mcpServers` nor `servers`; expected an object with one of them".to_owned());
    }
    let mut imported = ImportedServers::default();
    for (name, entry) in entries {
        let reader = ServerListReader { text, lookup };
        match reader.server(name, entry, &mut imported.notes) {
            Ok((name, server)) if is_ours(&name, &server) => {
                imported.notes.push(format!("server `{name}` is Rutter itself and was left out"));
            }
            Ok((name, server)) => match reader.table(&name, &server, &mut imported) {
                Ok(table) => drop(imported.servers.insert(name, table)),
                Err(why) => imported.notes.push(format!("server `{name}` was left out: {why}")),
            },
            Err(why) => imported.notes.push(format!("server `{name}` was left out: {why}")),
        }
    }
    Ok(imported)
}

struct ServerListReader<'a> {
    text: &'a str,
    lookup: &'a dyn Fn(&str) -> Option<String>,
}

impl ServerListReader<'_> {
    /// Reads one server by itself: an error in it does not affect the others.
    fn server(&self, name: &str, entry: &Value, notes: &mut Vec<String>) -> Result<(String, McpServerConfig), String> {
        let list = |name: &str| json!({ "mcpServers": { name: entry } }).to_string();
        let mut name = name.to_owned();
        let mut read = import(&list(&name), &|variable| self.stand_in(variable));
        if let Err(Error::Name { better, .. }) = &read {
            notes.push(format!("server `{name}` is called `{better}` here"));
            name = better.clone();
            read = import(&list(&name), &|variable| self.stand_in(variable));
        }
        let (mut servers, lines) = read.map_err(|error| match error {
            Error::Server { reason, .. } => reason.replace(MARK, "${").replace(MARK_END, "}"),
            error => error.to_string(),
        })?;
        notes.extend(lines);
        servers.remove(&name).map(|server| (name, server)).ok_or_else(|| "it is not there".to_owned())
    }

    /// The text to read for a variable: its value if that is not secret, otherwise a mark. `None` if the variable
    /// is not set and has a default.
    fn stand_in(&self, variable: &str) -> Option<String> {
        let held = (self.lookup)(variable);
        match &held {
            Some(text) if PLAIN.contains(&variable) || text.trim().chars().count() < SECRET_CHARS_MIN => held,
            None if self.text.contains(&format!("{variable}:-")) => None,
            _ => Some(format!("{MARK}{variable}{MARK_END}")),
        }
    }

    fn table(&self, name: &str, server: &McpServerConfig, imported: &mut ImportedServers) -> Result<Table, String> {
        let mut table = Table::new();
        match &server.reach {
            McpTransport::Child(child) => {
                let cwd = child.cwd.as_ref().map(|cwd| cwd.display().to_string());
                let texts = std::iter::once(&child.command).chain(&child.args).chain(&cwd);
                if let Some(variable) = texts.filter_map(|text| marked(text)).next() {
                    return Err(format!(
                        "`command`, `args` and `cwd` are not expanded here, and it needs ${{{variable}}}; write the \
                         value out, or use the file as it is with --mcp-config"
                    ));
                }
                if child.args.iter().any(|arg| arg.starts_with('-') && names_a_secret(arg)) {
                    imported.notes.push(format!(
                        "server `{name}` may have a credential among its `args`; if the server takes it from a variable, \
                         move it to `env` as ${{secret:…}}"
                    ));
                }
                table["command"] = value(child.command.as_str());
                if !child.args.is_empty() {
                    table["args"] = value(child.args.iter().map(String::as_str).collect::<Array>());
                }
                if !child.env.is_empty() {
                    table["env"] = value(referring(name, &child.env, imported));
                }
                if let Some(cwd) = cwd {
                    table["cwd"] = value(cwd);
                }
            }
            McpTransport::Http(http) => {
                if let Some(variable) = marked(http.url.as_str()) {
                    return Err(format!("`url` is not expanded here, and it needs ${{{variable}}}"));
                }
                table["url"] = value(http.url.as_str());
                if !http.headers.is_empty() {
                    table["headers"] = value(referring(name, &http.headers, imported));
                }
            }
        }
        if server.disabled {
            table["disabled"] = value(true);
        }
        Ok(table)
    }
}

/// Texts with `${secret:name}` in place of credentials.
fn referring(server: &str, texts: &BTreeMap<String, String>, imported: &mut ImportedServers) -> InlineTable {
    let mut table = InlineTable::new();
    for (name, text) in texts {
        let mut written = text.clone();
        while let Some(variable) = marked(&written).map(str::to_owned) {
            let secret = secret_name(&variable);
            let mark = format!("{MARK}{variable}{MARK_END}");
            written = written.replace(&mark, &format!("${{secret:{secret}}}"));
            imported.secrets.insert(secret, variable);
        }
        let is_in_the_clear = written == *text && (names_a_secret(name) || has_password(text));
        if is_in_the_clear && text.trim().chars().count() >= SECRET_CHARS_MIN {
            let secret = secret_name(&format!("{server}_{name}"));
            let variable = secret.to_ascii_uppercase();
            // `Bearer abc`: the scheme is not secret.
            let scheme = text.trim().rsplit_once(' ').map_or(String::new(), |(scheme, _)| format!("{scheme} "));
            written = format!("{scheme}${{secret:{secret}}}");
            imported.notes.push(format!(
                "server `{server}` has a literal `{name}`, which was not copied: put it into the variable {variable}, \
                 or give another source of {secret} under [secrets]"
            ));
            imported.secrets.insert(secret, variable);
        }
        table.insert(name, written.into());
    }
    table
}

/// The variable that the first mark in a text stands for.
fn marked(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(MARK)?;
    rest.split_once(MARK_END).map(|(variable, _)| variable)
}

fn secret_name(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}

/// `scheme://user:password@host`
fn has_password(text: &str) -> bool {
    let authority = text.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    authority.and_then(|authority| authority.rsplit_once('@')).is_some_and(|(who, _)| who.contains(':'))
}

fn is_ours(name: &str, server: &McpServerConfig) -> bool {
    let is_program = |text: &str| Path::new(text).file_name().is_some_and(|name| name == "rutter");
    name == "rutter"
        || match &server.reach {
            McpTransport::Child(child) => {
                is_program(&child.command) || child.args.first().is_some_and(|word| is_program(word))
            }
            McpTransport::Http(http) => http.url.port() == Some(7411) && http.url.path() == "/mcp",
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imported(text: &str) -> ImportedServers {
        let lookup = |name: &str| match name {
            "HOME" => Some("/people/operator".to_owned()),
            "LEVEL" => Some("info".to_owned()),
            "GITHUB_TOKEN" => Some("ghp_verysecret".to_owned()),
            _ => None,
        };
        read(text, Some(Path::new("/project")), &lookup).unwrap()
    }

    #[test]
    fn values_of_variables_are_referred_to_and_never_copied() {
        let text = r#"{ "mcpServers": { "git hub": { "command": "npx", "args": ["-y", "${HOME}/x"], "env": {
            "GITHUB_TOKEN": "${GITHUB_TOKEN}", "LOG": "${LEVEL}", "HOST": "${HOST:-localhost}",
            "URL": "https://${UNSET_TOKEN}@example.org" } } } }"#;
        let found = imported(text);
        let toml = found.to_string();
        assert!(!toml.contains("verysecret"), "{toml}");
        assert!(toml.contains("[servers.git-hub]") && toml.contains("/people/operator/x"), "{toml}");
        assert!(toml.contains("GITHUB_TOKEN = \"${secret:github_token}\""), "{toml}");
        assert!(toml.contains("https://${secret:unset_token}@example.org"), "{toml}");
        assert!(toml.contains("LOG = \"info\"") && toml.contains("HOST = \"localhost\""), "{toml}");
        assert!(toml.contains("github_token = { env = \"GITHUB_TOKEN\" }"), "{toml}");
    }

    #[test]
    fn credentials_in_the_clear_are_not_copied() {
        let text = r#"{ "servers": { "api": { "url": "https://example.org/mcp",
            "headers": { "Authorization": "Bearer abcdefgh" } },
            "db": { "command": "db", "env": { "DATABASE": "postgres://a:geheim@h/d" } } } }"#;
        let found = imported(text);
        let toml = found.to_string();
        assert!(!toml.contains("abcdefgh") && !toml.contains("geheim"), "{toml}");
        assert!(toml.contains("Authorization = \"Bearer ${secret:api_authorization}\""), "{toml}");
        assert!(toml.contains("api_authorization = { env = \"API_AUTHORIZATION\" }"), "{toml}");
        assert_eq!(found.notes.len(), 2, "{:?}", found.notes);
    }

    #[test]
    fn servers_that_cannot_be_imported_are_left_out_alone() {
        let text = r#"{ "mcpServers": {
            "old": { "type": "sse", "url": "https://example.org" },
            "args": { "command": "x", "args": ["${GITHUB_TOKEN}"] },
            "asks": { "command": "x", "env": { "A": "${input:key}" } },
            "rutter": { "command": "/usr/bin/rutter", "args": ["mcp"] },
            "good": { "command": "good" } },
            "projects": { "/project": { "mcpServers": { "mine": { "command": "mine" } } },
                          "/other": { "mcpServers": { "theirs": { "command": "theirs" } } } } }"#;
        let found = imported(text);
        assert_eq!(found.servers.keys().collect::<Vec<_>>(), ["good", "mine"]);
        assert_eq!(found.notes.len(), 4, "{:?}", found.notes);
        assert!(!found.notes.join("\n").contains("verysecret"), "{:?}", found.notes);
    }
}
