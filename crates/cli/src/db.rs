//! `rutter db`: maintenance of the database.

mod backup;
mod clean;
mod migrate;
mod restore;
mod stats;

use crate::args::db::DbCommand;
use crate::exit::CommandExit;
use crate::terminal::Terminal;

pub(crate) fn run(command: &DbCommand, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    match command {
        DbCommand::Migrate(args) => migrate::run(args, terminal),
        DbCommand::Backup(args) => backup::run(args, terminal),
        DbCommand::Restore(args) => restore::run(args, terminal),
        DbCommand::Stats(args) => stats::run(args, terminal),
        DbCommand::Clean(args) => clean::run(args, terminal),
    }
}

/// Bytes for people: `1.2 MiB`.
pub(crate) fn sized(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut tenths = bytes.saturating_mul(10);
    let mut unit = "B";
    for larger in UNITS {
        if tenths < 10_240 {
            break;
        }
        (tenths, unit) = (tenths / 1_024, larger);
    }
    match unit {
        "B" => format!("{bytes} B"),
        unit => format!("{}.{} {unit}", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_printed_in_the_largest_unit_that_fits() {
        for (bytes, text) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.0 KiB"),
            (1_536, "1.5 KiB"),
            (1 << 20, "1.0 MiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "1677721.5 TiB"),
        ] {
            assert_eq!(sized(bytes), text);
        }
    }
}
