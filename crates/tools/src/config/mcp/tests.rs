//! Reading the table of a server, and the list of servers of another program.

use super::*;
use crate::config::Config;
use import::import;

fn written(table: &str) -> Result<McpServerConfig, String> {
    let text = format!("[servers.one]\n{table}");
    let config: Config = toml_edit::de::from_str(&text).map_err(|error| error.to_string())?;
    Ok(config.servers["one"].clone())
}

fn imported(text: &str) -> Result<(BTreeMap<String, McpServerConfig>, Vec<String>), String> {
    let lookup = |name: &str| (name == "TOKEN").then(|| "s3cret ${HOME}".to_owned());
    import(text, &lookup).map_err(|error| error.to_string())
}

fn child_of(server: &McpServerConfig) -> &McpChildConfig {
    match &server.reach {
        McpTransport::Child(child) => child,
        McpTransport::Http(_) => panic!("expected a child"),
    }
}

#[test]
fn a_table_with_everything_is_read() {
    let server = written(
        "command = 'npx'\nargs = ['-y', 'files']\nenv = { A = 'b' }\ncwd = '/srv'\nstart_timeout = '5s'\n\
         trust = true\nconcurrency = 3\nrate = '5/s'\n[servers.one.tools.write]\nhidden = true",
    )
    .unwrap();
    assert_eq!(child_of(&server).args, ["-y", "files"]);
    assert_eq!(server.start_timeout, Some(Millis::seconds(5)));
    assert!(server.common.trust && server.common.tools["write"].hidden);
    assert_eq!(server.common.concurrency, Some(3));
}

#[test]
fn a_table_that_would_mislead_is_refused() {
    for (table, expected) in [
        ("command = 'a'\nurl = 'http://b'", "got both"),
        ("args = ['a']", "got neither"),
        ("command = 'a'\ncomand = 'b'", "unknown field `comand`"),
        ("command = 'a'\nheaders = { A = 'b' }", "`headers` go with `url`"),
        ("url = 'http://a'\nargs = ['b']", "go with `command`"),
        ("url = 'file:///etc/passwd'", "expected http or https"),
        ("url = 'http://a'\nheaders = { A = \"b\\nc\" }", "cannot be sent"),
        ("url = 'http://a'\nheaders = { Accept = 'b' }", "belongs to the protocol"),
        ("command = ' '", "`command` is empty"),
        ("command = 'a'\nenv = { 'A=B' = 'c' }", "cannot be the name of a variable"),
        ("command = 'a'\n[servers.one.tools.b]\nhiden = true", "unknown field `hiden`"),
    ] {
        let error = written(table).unwrap_err();
        assert!(error.contains(expected), "{table}: {error}");
    }
}

#[test]
fn the_values_of_env_and_headers_are_not_printed() {
    let child = written("command = 'a'\nenv = { TOKEN = 'hush' }").unwrap();
    let http = written("url = 'http://a/?key=hush'\nheaders = { Authorization = 'hush' }").unwrap();
    let printed = format!("{child:?} {http:?}");
    assert!(printed.contains("TOKEN") && printed.contains("Authorization"), "{printed}");
    assert!(!printed.contains("hush"), "{printed}");
}

#[test]
fn a_list_with_comments_commas_and_variables_is_imported() {
    let (servers, notes) = imported(
        r#"{ // as editors write it
        "mcpServers": {
            "files": {"command": "npx", "args": ["-y", "${WHERE:-/srv}"], "env": {"T": "${TOKEN}", "N": 3}, },
            "far-away": {"type": "streamable-http", "url": "https://a.example/mcp",
                         "headers": {"Authorization": "Bearer ${env:TOKEN}"}, "alwaysAllow": []},
            "off": {"command": "x", "disabled": true},
        } }"#,
    )
    .unwrap();
    assert_eq!(child_of(&servers["files"]).args, ["-y", "/srv"]);
    // The value of a variable is used as it is.
    assert_eq!(child_of(&servers["files"]).env["T"], "s3cret ${HOME}");
    assert_eq!(child_of(&servers["files"]).env["N"], "3");
    let McpTransport::Http(http) = &servers["far-away"].reach else { panic!("expected an address") };
    assert_eq!(http.headers["Authorization"], "Bearer s3cret ${HOME}");
    assert!(servers["off"].disabled && !servers["files"].disabled);
    assert_eq!(notes, ["server `far-away`: `alwaysAllow` is unknown and was ignored"]);
}

#[test]
fn the_list_of_vs_code_is_imported() {
    let (servers, notes) = imported(r#"{"inputs": [], "servers": {"a": {"type": "stdio", "command": "b"}}}"#).unwrap();
    assert_eq!(child_of(&servers["a"]).command, "b");
    assert!(notes.is_empty());
}

#[test]
fn a_list_that_would_mislead_is_refused_with_the_reason() {
    for (text, expected) in [
        ("{", "cannot be read as JSON"),
        ("{}", "neither `mcpServers` nor `servers`"),
        (r#"{"servers": {"my files!": {"command": "a"}}}"#, "to `my-files` for example"),
        (r#"{"servers": {"a.b": {"command": "a"}}}"#, "to `a-b` for example"),
        (r#"{"servers": {"a": {"type": "sse", "url": "http://b"}}}"#, "transport of 2024"),
        (r#"{"servers": {"a": {"type": "ws", "url": "http://b"}}}"#, "expected stdio, http or streamable-http"),
        (r#"{"servers": {"a": {"type": "http", "command": "b"}}}"#, "expected `url`"),
        (r#"{"servers": {"a": {"command": "b", "url": "http://c"}}}"#, "got both"),
        (r#"{"servers": {"a": {"command": "${NOPE}"}}}"#, "needs the variable `NOPE`"),
        (r#"{"servers": {"a": {"command": "${input:key}"}}}"#, "only the program it was written for"),
        (r#"{"servers": {"a": {"command": "${NOPE"}}}"#, "without its `}`"),
        (r#"{"servers": {"a": {"command": "b", "args": [1]}}}"#, "`args` must be a list of texts"),
    ] {
        let error = imported(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}
