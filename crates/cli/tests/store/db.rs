//! What people and programs see of `rutter db`, of settings, and of databases that cannot be used.

use crate::kept::Kept;
use crate::seen;
use std::fs::{self, File};
use std::io::Write;

#[test]
fn every_command_explains_itself() {
    let kept = Kept::empty();
    for command in ["migrate", "backup", "restore", "stats", "clean"] {
        insta::assert_snapshot!(format!("help_{command}"), kept.seen(&["db", command, "--help"]));
    }
    insta::assert_snapshot!("help", kept.seen(&["db", "--help"]));
}

#[test]
fn a_new_database_is_made_and_is_empty() {
    let kept = Kept::empty();
    let text = seen(
        &kept,
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
fn a_backup_is_verified_and_holds_what_was_open_when_restored() {
    let kept = Kept::new();
    let text = seen(
        &kept,
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
fn a_database_that_cannot_be_used_is_refused_with_what_to_do() {
    let nothing = Kept::empty();
    let no_database = nothing.seen(&["journal", "verify"]) + &nothing.seen(&["journal", "verify", "--json"]);
    insta::assert_snapshot!("no_database", no_database);
    assert!(!nothing.data().exists(), "looking makes nothing");

    let strange = Kept::empty();
    fs::create_dir(strange.data()).unwrap();
    fs::write(strange.data().join("rutter.db"), "these are not the bytes of a database ".repeat(100))
        .unwrap();
    let text = seen(&strange, &[&["journal", "verify"], &["db", "migrate"], &["db", "stats", "--json"]]);
    insta::assert_snapshot!("not_a_database", text);

    let later = Kept::empty();
    assert_eq!(later.rutter(&["db", "migrate"]).code, 0);
    let connection = rusqlite::Connection::open(later.data().join("rutter.db")).unwrap();
    let newer = "insert into migration (number, name, checksum, applied_at) values (99, 'later', x'00', 0)";
    connection.execute(newer, []).unwrap();
    drop(connection);
    insta::assert_snapshot!("newer", seen(&later, &[&["journal", "verify"], &["db", "migrate", "--check"]]));

    let kept = Kept::new();
    insta::assert_snapshot!("no_tenant", kept.seen(&["journal", "verify", "--tenant", "acme"]));
}

#[test]
fn a_database_in_use_can_be_read_and_not_changed() {
    let kept = Kept::new();
    let mut lock = File::create(kept.data().join("rutter.lock")).unwrap();
    lock.lock().unwrap();
    writeln!(lock, "4711").unwrap();
    let text = seen(
        &kept,
        &[
            &["db", "migrate"],
            &["db", "clean", "--older-than", "1d", "--yes"],
            &["journal", "erase", "exec_2-order", "--reason", "to try it", "--yes", "--json"],
            &["db", "restore", "data/rutter.db", "--replace", "--reason", "to try it"],
            &["journal", "verify"],
        ],
    );
    insta::assert_snapshot!("in_use", text);
    for reading in
        [&["journal", "export"][..], &["db", "stats"], &["db", "backup", "copy.db"], &["journal", "key"]]
    {
        let answer = kept.rutter(reading);
        assert_eq!(answer.code, 0, "{reading:?}: {answer:?}");
    }
}

#[test]
fn settings_come_from_the_nearest_place_that_has_them() {
    let kept = Kept::empty();
    let place = |arguments: &[&str], variables: &[(&str, &str)]| {
        let arguments = [&["db", "migrate", "--check", "--json"], arguments].concat();
        kept.rutter_with(&arguments, variables).json()["dir"].as_str().unwrap().to_owned()
    };
    let home = [("HOME", "home")];
    let all =
        [("HOME", "home"), ("XDG_CONFIG_HOME", "conf"), ("XDG_DATA_HOME", "xdg"), ("RUTTER_DIR", "env")];
    assert_eq!(place(&[], &home), "home/.local/share/rutter");
    assert_eq!(place(&[], &all[..3]), "xdg/rutter");
    fs::create_dir_all(kept.path("conf/rutter")).unwrap();
    kept.write("conf/rutter/config.toml", "dir = \"user\"\n");
    assert_eq!(place(&[], &all[..3]), "conf/rutter/user");
    kept.write("rutter.toml", "dir = \"local\"\n");
    assert_eq!(place(&[], &all[..3]), "local");
    assert_eq!(place(&[], &all), "env");
    assert_eq!(place(&["--dir", "flag"], &all), "flag");

    fs::remove_file(kept.path("rutter.toml")).unwrap();
    let nowhere = kept.rutter_with(&["db", "stats"], &[]);
    assert_eq!(nowhere.code, 2);
    assert!(
        nowhere.stderr.starts_with("error[config.invalid]: nothing says where the data is"),
        "{nowhere:?}"
    );
}

#[test]
fn wrong_settings_are_told_with_their_line() {
    let kept = Kept::empty();
    let mut text = String::new();
    for settings in [
        "dirr = \"data\"\n",
        "[retention]\npayload = \"90d\"\n",
        "[retention]\nexecutions = \"a while\"\n",
        "# a note\ndir = data\n",
    ] {
        kept.write("rutter.toml", settings);
        text += &format!("{settings}{}\n", kept.seen(&["db", "stats"]));
    }
    insta::assert_snapshot!("settings", text);
}
