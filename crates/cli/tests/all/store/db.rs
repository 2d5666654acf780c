//! The output of `rutter db`, of settings, and of unusable databases.

use crate::store::fixture::StoreFixture;
use crate::store::seen;
use std::fs::{self, File};
use std::io::Write;

#[test]
fn every_command_explains_itself() {
    let fixture = StoreFixture::empty();
    for command in ["migrate", "backup", "restore", "stats", "clean"] {
        insta::assert_snapshot!(format!("help_{command}"), fixture.seen(&["db", command, "--help"]));
    }
    insta::assert_snapshot!("help", fixture.seen(&["db", "--help"]));
}

#[test]
fn a_new_database_is_created_empty() {
    let fixture = StoreFixture::empty();
    let text = seen(
        &fixture,
        &[
            &["db", "migrate", "--check"],
            &["db", "migrate"],
            &["db", "migrate"],
            &["db", "migrate", "--check", "--json"],
            &["db", "stats"],
            &["journal", "verify"],
            &["journal", "key"],
            &["journal", "export"],
        ],
    );
    insta::assert_snapshot!("new", text);
}

#[test]
fn a_backup_is_verified_and_pauses_open_executions_when_restored() {
    let fixture = StoreFixture::new();
    let text = seen(
        &fixture,
        &[
            &["db", "stats"],
            &["db", "backup", "copy.db"],
            &["db", "backup", "copy.db"],
            &["db", "backup", "second.db", "--json"],
            &["db", "restore", "copy.db", "--reason", "to try it"],
            &["db", "restore", "not-there.db", "--dir", "other", "--reason", "to try it"],
            &["db", "restore", "copy.db", "--dir", "other", "--reason", "to try it"],
            &["journal", "verify", "--dir", "other", "--projections"],
            &["db", "restore", "copy.db", "--replace", "--reason", "to try it", "--json"],
            &["journal", "verify", "--projections"],
        ],
    );
    insta::assert_snapshot!("backup", text);
}

#[test]
fn an_unusable_database_is_refused_with_a_hint() {
    let nothing = StoreFixture::empty();
    let no_database = nothing.seen(&["journal", "verify"]) + &nothing.seen(&["journal", "verify", "--json"]);
    insta::assert_snapshot!("no_database", no_database);
    assert!(!nothing.data().exists(), "reading creates nothing");

    let strange = StoreFixture::empty();
    fs::create_dir(strange.data()).unwrap();
    fs::write(strange.data().join("rutter.db"), "these are not the bytes of a database ".repeat(100)).unwrap();
    let text = seen(&strange, &[&["journal", "verify"], &["db", "migrate"], &["db", "stats", "--json"]]);
    insta::assert_snapshot!("not_a_database", text);

    let later = StoreFixture::empty();
    assert_eq!(later.rutter(&["db", "migrate"]).code, 0);
    let connection = rusqlite::Connection::open(later.data().join("rutter.db")).unwrap();
    let newer = "insert into migration (number, name, checksum, applied_at) values (99, 'later', x'00', 0)";
    connection.execute(newer, []).unwrap();
    drop(connection);
    insta::assert_snapshot!("newer", seen(&later, &[&["journal", "verify"], &["db", "migrate", "--check"]]));

    let fixture = StoreFixture::new();
    insta::assert_snapshot!("no_tenant", fixture.seen(&["journal", "verify", "--tenant", "acme"]));
}

#[test]
fn a_database_in_use_can_be_read_and_not_changed() {
    let fixture = StoreFixture::new();
    let mut lock = File::create(fixture.data().join("rutter.lock")).unwrap();
    lock.lock().unwrap();
    writeln!(lock, "4711").unwrap();
    let text = seen(
        &fixture,
        &[
            &["db", "migrate"],
            &["db", "clean", "--older-than", "1d", "--yes"],
            &["journal", "erase", "exec_2-order", "--reason", "to try it", "--yes", "--json"],
            &["db", "restore", "data/rutter.db", "--replace", "--reason", "to try it"],
            &["journal", "verify"],
        ],
    );
    insta::assert_snapshot!("in_use", text);
    for reading in [&["journal", "export"][..], &["db", "stats"], &["db", "backup", "copy.db"], &["journal", "key"]] {
        let answer = fixture.rutter(reading);
        assert_eq!(answer.code, 0, "{reading:?}: {answer:?}");
    }
}

#[test]
fn settings_come_from_the_nearest_source() {
    let fixture = StoreFixture::empty();
    let place = |arguments: &[&str], variables: &[(&str, &str)]| {
        let arguments = [&["db", "migrate", "--check", "--json"], arguments].concat();
        fixture.rutter_with(&arguments, variables).json()["dir"].as_str().unwrap().to_owned()
    };
    let home = [("HOME", "home")];
    let all = [("HOME", "home"), ("XDG_CONFIG_HOME", "conf"), ("XDG_DATA_HOME", "xdg"), ("RUTTER_DIR", "env")];
    assert_eq!(place(&[], &home), "home/.local/share/rutter");
    assert_eq!(place(&[], &all[..3]), "xdg/rutter");
    fs::create_dir_all(fixture.path("conf/rutter")).unwrap();
    fixture.write("conf/rutter/config.toml", "dir = \"user\"\n");
    assert_eq!(place(&[], &all[..3]), "conf/rutter/user");
    fixture.write("rutter.toml", "dir = \"local\"\n");
    assert_eq!(place(&[], &all[..3]), "local");
    assert_eq!(place(&[], &all), "env");
    assert_eq!(place(&["--dir", "flag"], &all), "flag");

    fs::remove_file(fixture.path("rutter.toml")).unwrap();
    let nowhere = fixture.rutter_with(&["db", "stats"], &[]);
    assert_eq!(nowhere.code, 2);
    assert!(nowhere.stderr.starts_with("error[config.invalid]: no data directory is configured"), "{nowhere:?}");
}

#[test]
fn wrong_settings_are_reported_with_their_line() {
    let fixture = StoreFixture::empty();
    let mut text = String::new();
    for settings in [
        "dirr = \"data\"\n",
        "[retention]\npayload = \"90d\"\n",
        "[retention]\nexecutions = \"a while\"\n",
        "# a note\ndir = data\n",
    ] {
        fixture.write("rutter.toml", settings);
        text += &format!("{settings}{}\n", fixture.seen(&["db", "stats"]));
    }
    insta::assert_snapshot!("settings", text);
}
