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
