//! Commands for alerts: real programs, started under limits, and nothing that was not named.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

use rutter_core::port::bell::Bell;
use rutter_tools::bell::Bells;
use rutter_tools::child::{Children, Launcher, Roster};
use rutter_tools::config::Alerts;
use std::sync::Arc;

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn bells(&self, toml: &str) -> Result<Bells, String> {
        let own = std::env::current_exe().unwrap();
        let program = own.ancestors().nth(2).unwrap().join("examples/launch");
        assert!(program.exists(), "build the launcher first: cargo build -p rutter-tools --example launch");
        let (roster, _) = Roster::open(&self.folder.path().join("roster")).unwrap();
        let children = Children::new(Launcher { program, arguments: Vec::new() }, Arc::new(roster));
        let alerts: Alerts = toml_edit::de::from_str(toml).map_err(|error| error.to_string())?;
        let folder = self.folder.path().join("alerts");
        Bells::new(&alerts, Arc::new(children), &folder).map_err(|error| error.to_string())
    }
}

fn bench() -> Bench {
    Bench { folder: tempfile::tempdir().unwrap() }
}

#[tokio::test]
async fn a_command_gets_the_alert_on_standard_input_and_its_arguments_as_they_are() {
    let bench = bench();
    let bells = bench.bells(
        "[commands.pager]\nprogram = \"/bin/sh\"\narguments = [\"-c\", 'cat > heard; echo \"$1\" >> heard', \"sh\", \"$(id)\"]\n",
    );
    let bells = bells.unwrap();
    assert_eq!(bells.names(), ["pager"]);
    bells.ring("pager", br#"{"type":"dev.rutter.alert.v1"}"#.to_vec()).await.unwrap();
    let heard = std::fs::read_to_string(bench.folder.path().join("alerts/heard")).unwrap();
    assert_eq!(heard, "{\"type\":\"dev.rutter.alert.v1\"}$(id)\n");
}

#[tokio::test]
async fn what_went_wrong_is_told_and_what_takes_too_long_is_ended() {
    let bench = bench();
    let bells = bench.bells(
        "[commands.fails]\nprogram = \"/bin/sh\"\narguments = [\"-c\", \"echo no paper >&2; exit 3\"]\n\
         [commands.sleeps]\nprogram = \"/bin/sleep\"\narguments = [\"60\"]\ntimeout = \"100ms\"\n\
         [commands.missing]\nprogram = \"/no/such/program\"\n",
    );
    let bells = bells.unwrap();
    assert!(bells.ring("fails", Vec::new()).await.unwrap_err().contains("no paper"));
    assert!(bells.ring("sleeps", Vec::new()).await.unwrap_err().contains("too long"));
    bells.ring("missing", Vec::new()).await.unwrap_err();
    assert!(bells.ring("/bin/sh", Vec::new()).await.unwrap_err().contains("there is no command"));
}

#[test]
fn programs_are_named_by_their_whole_path_and_nothing_else_is_understood() {
    for (toml, expected) in [
        ("[commands.a]\nprogram = \"sh\"\n", "whole path"),
        ("[commands.\"a b\"]\nprogram = \"/bin/sh\"\n", "is no name"),
        ("[commands.a]\n", "missing field"),
        ("[commands.a]\nprogram = \"/bin/sh\"\nshell = true\n", "unknown field"),
    ] {
        let refused = bench().bells(toml).unwrap_err();
        assert!(refused.contains(expected), "{toml}: {refused}");
    }
}
