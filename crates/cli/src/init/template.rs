//! The initial files of a project.

use crate::import::ImportedServers;

pub(super) const PLAN: &str = r#"# A first plan, with built-in tools:
#   rutter plan preview plans/first.yaml    what it would do
#   rutter run plans/first.yaml             execute it
#   rutter journal tail                     its journal
name: first
goal: Count the latest executions, and log a note about them
steps:
  - id: look
    tool: journal.executions
    parameters: { limit: 5 }
  - id: note
    tool: notify.send
    depends_on: [look]
    parameters:
      channel: log
      title: first plan
      message: "{{ steps.look.result.executions | length }} executions are in the journal"
"#;

/// All tables, with their defaults.
pub(super) fn settings(imported: &ImportedServers) -> String {
    let mut text = SETTINGS.to_owned();
    if !imported.servers.is_empty() {
        text += &format!("\n# Imported from other programs' lists.\n{imported}");
    }
    text
}

/// Every line that begins with `#` and a letter or bracket is valid after removing the `#`.
const SETTINGS: &str = r#"# Settings of Rutter. Commented-out lines show the defaults, or examples.
# `rutter config show --origin` prints the settings in effect, `rutter doctor` checks them.

# The directory of the database, relative to this file.
dir = ".rutter"

# MCP servers: a program that speaks MCP, or a url. `rutter tools import FILE` prints such tables.
#[servers.files]
#command = "npx"
#args = ["-y", "@modelcontextprotocol/server-filesystem", "."]
#env = { API_TOKEN = "${secret:api_token}" }
#trust = false              # trust the server's hints about the safety of its tools
#start_timeout = "60s"
#timeout = "30s"            # of its calls, unless the plan says another; no plan may exceed timeout_max
#timeout_max = "5m"
#retry = { max_attempts = 3, on = ["unavailable"] }
#[servers.files.tools.write_file]
#safety = "idempotent"

# HTTP APIs, described here.
#[http.weather]
#base = "https://api.example.org"
#[http.weather.tools.forecast]
#description = "The weather forecast of a city"
#method = "GET"
#path = "/forecast/{city}"
#input = { type = "object", properties = { city = { type = "string" } }, required = ["city"] }
#safety = "read_only"

# Programs. They get JSON or arguments, and run under limits.
#[commands.clock.tools.today]
#description = "The current date"
#argv = ["/bin/date", "+%F"]
#result = "text"
#safety = "read_only"

# The policy, which stands above every plan: rules deny calls, ask a person, or limit them.
#[[policy]]
#tools = ["files.*"]
#safety = ["once"]
#approval = { expires = "24h" }

# How often a denied call or new plan may be put to a person again.
#[policy_limits]
#ask_again_max = 3

# Sources of secrets: a variable, a private file, or the output of a program.
#[secrets]
#api_token = { env = "API_TOKEN" }

# Limits of concurrent calls, and the circuit breaker for failing servers.
#[limits]
#calls = 64
#calls_per_tenant = 64
#calls_per_server = 8
#breaker_failures = 5
#breaker_pause = "30s"

# Channels of notify.send, besides `log`.
#[notify.team]
#webhook = { url = "https://chat.example.org/hook" }

# For `rutter db clean`: how long data is kept after an execution ended.
#[retention]
#payloads = "never"
#executions = "never"

# `rutter serve`: HTTP access. Other machines need tokens.
#[server]
#listen = "127.0.0.1:7411"
#hosts = []
#ask_at_client = true
#[server.tokens.ci]
#role = "agent"
#env = "CI_TOKEN"
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::sources::ConfigSources;

    /// The file with every commented-out line in use.
    #[test]
    fn every_commented_out_line_is_valid() {
        let uncommented: String = SETTINGS
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '[') => {
                    format!("{rest}\n")
                }
                _ => format!("{line}\n"),
            })
            .collect();
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("rutter.toml");
        std::fs::write(&path, &uncommented).unwrap();
        let store = crate::args::DatabaseArgs { config: Some(path), ..Default::default() };
        let read = ConfigSources::read(&store, &Default::default()).map_err(|error| error.to_string());
        let sources = read.unwrap();
        crate::tools::check(&sources.config().map_err(|error| error.to_string()).unwrap()).unwrap();
        let held = sources.effective_settings().map_err(|error| error.to_string()).unwrap();
        let tables = ["servers.", "http.", "commands.", "secrets.", "limits.", "notify.", "retention.", "server."];
        for table in tables {
            assert!(held.iter().any(|holds| holds.key.starts_with(table)), "{table}");
        }
    }
}
