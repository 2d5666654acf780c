//! The files a project begins with.

use crate::import::Imported;

pub(super) const PLAN: &str = r#"# A first plan, with tools that come with Rutter:
#   rutter plan preview plans/first.yaml    what would happen
#   rutter run plans/first.yaml             carry it out
#   rutter journal tail                     what happened
name: first
goal: Look back at what was done here, and leave a note about it
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

/// All tables, with what holds when nothing is said.
pub(super) fn settings(imported: &Imported) -> String {
    let mut text = SETTINGS.to_owned();
    if !imported.servers.is_empty() {
        text += &format!("\n# Taken over from other programs' lists.\n{imported}");
    }
    text
}

/// Every line that begins with `#` and a letter or bracket can be used by taking the `#` away.
const SETTINGS: &str = r#"# Settings of Rutter. What is commented out shows the default, or an example where there is none.
# `rutter config show --origin` says what holds, `rutter doctor` whether it works.

# Where the database is, relative to this file.
dir = ".rutter"

# MCP servers: a program that speaks MCP, or a url. `rutter tools import FILE` makes such tables.
#[servers.files]
#command = "npx"
#args = ["-y", "@modelcontextprotocol/server-filesystem", "."]
#env = { API_TOKEN = "${secret:api_token}" }
#trust = false              # believe what the server says of its tools' safety
#start_timeout = "60s"

# HTTP APIs, described here.
#[http.weather]
#base = "https://api.example.org"
#[http.weather.tools.forecast]
#description = "The weather of the next days"
#method = "GET"
#path = "/forecast/{city}"
#input = { type = "object", properties = { city = { type = "string" } }, required = ["city"] }
#safety = "read_only"

# Programs. They get JSON or arguments, and run under limits.
#[commands.clock.tools.today]
#description = "The date of today"
#argv = ["/bin/date", "+%F"]
#result = "text"
#safety = "read_only"

# Where secrets come from: a variable, a file nobody else may read, or what a program prints.
#[secrets]
#api_token = { env = "API_TOKEN" }

# Calls at once, and when a failing server is left alone.
#[limits]
#calls = 64
#calls_per_tenant = 64
#calls_per_server = 8
#breaker_failures = 5
#breaker_pause = "30s"

# Where notify.send can send to, beside `log`.
#[notify.team]
#webhook = { url = "https://chat.example.org/hook" }

# For `rutter db clean`: how long things are kept after their execution ended.
#[retention]
#payloads = "never"
#executions = "never"

# `rutter serve`: who may come in over HTTP. From elsewhere only with tokens.
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
    use crate::config::sources::Sources;

    /// What the file says when everything in it is used.
    #[test]
    fn every_line_that_is_commented_out_can_be_used() {
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
        let store = crate::args::StoreArgs { config: Some(path), ..Default::default() };
        let read = Sources::read(&store, &Default::default()).map_err(|error| error.to_string());
        let sources = read.unwrap();
        crate::tools::check(&sources.config().map_err(|error| error.to_string()).unwrap()).unwrap();
        let held = sources.holding().map_err(|error| error.to_string()).unwrap();
        let tables =
            ["servers.", "http.", "commands.", "secrets.", "limits.", "notify.", "retention.", "server."];
        for table in tables {
            assert!(held.iter().any(|holds| holds.key.starts_with(table)), "{table}");
        }
    }
}
