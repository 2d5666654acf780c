//! Where the data is and how long it is kept. Flags come before the environment, and that before files.

mod file;

use crate::failure::Refusal;
use file::Settings;
use rutter_core::time::Millis;
use std::env;
use std::path::{Path, PathBuf};

const LOCAL: &str = "rutter.toml";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// The directory of the database.
    pub(crate) directory: PathBuf,
    pub(crate) retention: Retention,
    /// Who works here, by the name the system knows; it stands in the ledger's own journal.
    pub(crate) operator: String,
}

/// How long things are kept after their execution ended; `None` is for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retention {
    pub(crate) payloads: Option<Millis>,
    pub(crate) executions: Option<Millis>,
}

impl Config {
    pub(crate) fn load(flag: Option<&Path>) -> Result<Config, Refusal> {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let home = variable("HOME").map(PathBuf::from);
        let beneath_home = |path: &str| home.as_ref().map(|home| home.join(path));
        let settings = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| beneath_home(".config"));
        let data = variable("XDG_DATA_HOME").map(PathBuf::from).or_else(|| beneath_home(".local/share"));
        let mut files = vec![Settings::load(Path::new(LOCAL))?];
        if let Some(directory) = settings {
            files.push(Settings::load(&directory.join("rutter/config.toml"))?);
        }
        let operator = ["USER", "LOGNAME"].into_iter().find_map(|name| env::var(name).ok());
        Config::choose(
            flag.map(Path::to_owned).or_else(|| variable("RUTTER_DIR").map(PathBuf::from)),
            &files,
            data.map(|directory| directory.join("rutter")),
            operator.filter(|name| !name.is_empty()).unwrap_or_else(|| "operator".to_owned()),
        )
    }

    /// Each setting comes from the first place that says something about it.
    fn choose(
        said: Option<PathBuf>,
        files: &[Settings],
        default: Option<PathBuf>,
        operator: String,
    ) -> Result<Config, Refusal> {
        let directory = said.or_else(|| files.iter().find_map(|file| file.dir.clone())).or(default);
        let nowhere = || {
            Refusal::new("config.invalid", "nothing says where the data is")
                .with_hint("name a directory with --dir, RUTTER_DIR, or `dir` in rutter.toml")
        };
        let retention = Retention {
            payloads: files.iter().find_map(|file| file.payloads).flatten(),
            executions: files.iter().find_map(|file| file.executions).flatten(),
        };
        Ok(Config { directory: directory.ok_or_else(nowhere)?, retention, operator })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(said: Option<&str>, files: &[Settings], default: Option<&str>) -> Result<Config, Refusal> {
        Config::choose(said.map(Into::into), files, default.map(Into::into), "operator".to_owned())
    }

    #[test]
    fn what_is_said_comes_before_files_and_nearer_files_before_farther_ones() {
        let near = Settings { payloads: Some(None), ..Settings::default() };
        let far = Settings {
            dir: Some("far".into()),
            payloads: Some(Some(Millis(1))),
            executions: Some(Some(Millis(2))),
        };
        let files = [near, far];
        for (said, files, expected) in [
            (Some("said"), &files[..], "said"),
            (None, &files[..], "far"),
            (None, &files[..1], "default"),
            (None, &[], "default"),
        ] {
            let config = choose(said, files, Some("default")).unwrap();
            assert_eq!(config.directory, Path::new(expected));
        }
        let kept = choose(None, &files, None).unwrap().retention;
        assert_eq!(kept, Retention { payloads: None, executions: Some(Millis(2)) });
        assert!(choose(None, &[], None).is_err(), "somebody must say where");
    }
}
