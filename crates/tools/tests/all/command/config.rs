//! Validation of the configuration of commands.

use super::fixture::CommandFixture;

#[test]
fn invalid_settings_are_refused_by_name() {
    let fixture = CommandFixture::new();
    for (toml, word) in [
        ("argv = ['/bin/sh']\ndescription = 'x'\nshell = true", "shell"),
        ("argv = ['sh']\ndescription = 'x'", "absolute path"),
        ("description = 'x'", "name a program"),
        ("argv = ['/bin/sh', '{x}']\ndescription = 'x'", "{x}"),
        ("argv = ['/bin/sh']", "description"),
        ("argv = ['/bin/sh']\ndescription = 'x'\nexit = { 0 = 'done' }", "1 to 255"),
        ("argv = ['/bin/sh']\ndescription = 'x'\nexit = { 256 = 'done' }", "1 to 255"),
        ("argv = ['/bin/sh']\ndescription = 'x'\nexit = { 3 = { not_done = 'strange' } }", "strange"),
        ("argv = ['/bin/sh']\ndescription = 'x'\ntimeout = 30", "string"),
    ] {
        let error = fixture.try_server(&format!("[tools.go]\n{toml}")).unwrap_err();
        assert!(error.contains(word), "{toml}: {error}");
    }
    assert!(fixture.try_server("unknown = 1").unwrap_err().contains("unknown"));
    assert!(fixture.try_server("cwd = '/no/such/directory'").unwrap_err().contains("/no/such/directory"));
}

#[test]
fn the_settings_of_every_kind_of_server_are_passed_on() {
    let toml = "concurrency = 2\nrate = '5/s'\n[tools.go]\nargv = ['/bin/true']\ndescription = 'x'\n\
                safety = 'idempotent'\nkey_parameter = 'key'\nhidden = true\nconcurrency = 1";
    let server: rutter_tools::config::command::CommandServerConfig = toml_edit::de::from_str(toml).unwrap();
    let common = server.common();
    assert_eq!((common.concurrency, common.rate.unwrap().calls, common.trust), (Some(2), 5, false));
    let tool = &common.tools["go"];
    assert_eq!(tool.safety, Some(rutter_core::tool::Safety::Idempotent));
    assert_eq!((tool.key_parameter.as_deref(), tool.hidden, tool.concurrency), (Some("key"), true, Some(1)));
}

#[test]
fn the_most_a_plan_may_give_a_program_is_known_when_the_plan_is_checked() {
    for (of_server, of_tool, timeout, timeout_max) in [
        ("", "", None, "5m"),
        ("", "timeout = '10s'", Some("10s"), "10s"),
        ("", "timeout = '10s'\ntimeout_max = '1h'", Some("10s"), "1h"),
        ("timeout_max = '20m'", "", None, "20m"),
        ("timeout = '2m'\ntimeout_max = '20m'", "timeout_max = '30m'", Some("2m"), "30m"),
    ] {
        let toml = format!("{of_server}\n[tools.go]\nargv = ['/bin/true']\ndescription = 'x'\n{of_tool}");
        let server: rutter_tools::config::command::CommandServerConfig = toml_edit::de::from_str(&toml).unwrap();
        let attempts = server.common().attempts_of("go");
        assert_eq!(attempts.timeout.map(|span| span.to_string()).as_deref(), timeout, "{toml}");
        assert_eq!(attempts.timeout_max.unwrap().to_string(), timeout_max, "{toml}");
        assert_eq!(server.common().problems(), Vec::<String>::new());
    }
    let toml = "timeout_max = '1m'\n[tools.go]\nargv = ['/bin/true']\ndescription = 'x'\ntimeout = '2m'";
    let server: rutter_tools::config::command::CommandServerConfig = toml_edit::de::from_str(toml).unwrap();
    let problem = ".tools.go: `timeout` is 2m, more than `timeout_max`, which is 1m";
    assert_eq!(server.common().problems(), [problem]);
}
