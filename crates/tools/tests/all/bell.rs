//! Commands for alerts: real programs, started under limits, and only configured ones.

use crate::fixture::children;
use rutter_core::port::alert_commands::AlertCommands;
use rutter_tools::alert_commands::AlertCommandRunner;
use rutter_tools::config::AlertSettings;
use std::sync::Arc;

struct AlertFixture {
    folder: tempfile::TempDir,
}

impl AlertFixture {
    fn runner(&self, toml: &str) -> Result<AlertCommandRunner, String> {
        let children = children(self.folder.path());
        let alerts: AlertSettings = toml_edit::de::from_str(toml).map_err(|error| error.to_string())?;
        let folder = self.folder.path().join("alerts");
        AlertCommandRunner::new(&alerts, Arc::new(children), &folder).map_err(|error| error.to_string())
    }
}

fn fixture() -> AlertFixture {
    AlertFixture { folder: tempfile::tempdir().unwrap() }
}

#[tokio::test]
async fn a_command_gets_the_alert_on_standard_input_and_its_arguments_as_they_are() {
    let fixture = fixture();
    let runner = fixture.runner(
        "[commands.pager]\nprogram = \"/bin/sh\"\narguments = [\"-c\", 'cat > heard; echo \"$1\" >> heard', \"sh\", \"$(id)\"]\n",
    );
    let runner = runner.unwrap();
    assert_eq!(runner.names(), ["pager"]);
    runner.run("pager", br#"{"type":"dev.rutter.alert.v1"}"#.to_vec()).await.unwrap();
    let heard = std::fs::read_to_string(fixture.folder.path().join("alerts/heard")).unwrap();
    assert_eq!(heard, "{\"type\":\"dev.rutter.alert.v1\"}$(id)\n");
}

/// Tests run in the directory of their crate, below which the build output has a place for such files.
#[tokio::test]
async fn a_command_runs_also_if_the_directory_of_the_data_is_relative() {
    let target = std::path::Path::new("../../target/tmp");
    std::fs::create_dir_all(target).unwrap();
    let folder = tempfile::tempdir_in(target).unwrap();
    let relative = target.join(folder.path().file_name().unwrap()).join("alerts");
    let alerts: AlertSettings = toml_edit::de::from_str(
        "[commands.pager]\nprogram = \"/bin/sh\"\narguments = [\"-c\", \"cat > heard; echo $HOME >> heard\"]\n",
    )
    .unwrap();
    let runner = AlertCommandRunner::new(&alerts, Arc::new(children(folder.path())), &relative).unwrap();
    runner.run("pager", b"{}".to_vec()).await.unwrap();
    let heard = std::fs::read_to_string(relative.join("heard")).unwrap();
    let home = heard.strip_prefix("{}").unwrap().trim_end();
    assert!(std::path::Path::new(home).is_absolute(), "{heard}");
}

#[tokio::test]
async fn failures_are_reported_and_slow_commands_are_ended() {
    let fixture = fixture();
    let runner = fixture.runner(
        "[commands.fails]\nprogram = \"/bin/sh\"\narguments = [\"-c\", \"echo no paper >&2; exit 3\"]\n\
         [commands.sleeps]\nprogram = \"/bin/sleep\"\narguments = [\"60\"]\ntimeout = \"100ms\"\n\
         [commands.missing]\nprogram = \"/no/such/program\"\n",
    );
    let runner = runner.unwrap();
    assert!(runner.run("fails", Vec::new()).await.unwrap_err().contains("no paper"));
    assert!(runner.run("sleeps", Vec::new()).await.unwrap_err().contains("too long"));
    runner.run("missing", Vec::new()).await.unwrap_err();
    assert!(runner.run("/bin/sh", Vec::new()).await.unwrap_err().contains("there is no command"));
}

#[test]
fn programs_need_an_absolute_path_and_unknown_keys_are_refused() {
    for (toml, expected) in [
        ("[commands.a]\nprogram = \"sh\"\n", "absolute path"),
        ("[commands.\"a b\"]\nprogram = \"/bin/sh\"\n", "invalid name"),
        ("[commands.a]\n", "missing field"),
        ("[commands.a]\nprogram = \"/bin/sh\"\nshell = true\n", "unknown field"),
    ] {
        let refused = fixture().runner(toml).unwrap_err();
        assert!(refused.contains(expected), "{toml}: {refused}");
    }
}
