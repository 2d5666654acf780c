//! Tampers with the database file.

use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "import sqlite3, sys\n\
    connection = sqlite3.connect(sys.argv[1], timeout=30)\n\
    connection.execute('update entry set hash = randomblob(32)')\n\
    connection.commit()";

/// Gives every entry of the database in a folder another hash.
pub fn change_the_past(folder: &Path) {
    let database = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let database = database.into_iter().find(|path| path.extension().is_some_and(|it| it == "db")).unwrap();
    let python = std::env::var("RUTTER_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    assert!(Command::new(python).args(["-c", PROGRAM]).arg(&database).status().unwrap().success());
}
