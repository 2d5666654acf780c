//! The journal: all entries are intact, and one flipped bit in a copy is found and located.

use super::SceneContext;
use crate::demo::ending::SceneEnding;
use crate::demo::output::WIDTH;
use crate::table::wrapped_to;
use anyhow::{Context, ensure};
use serde_json::Value;
use std::fs;

/// The copy, within the demo's directory.
pub(crate) const COPY: &str = "copy";

pub(super) fn play(theatre: &SceneContext<'_>) -> anyhow::Result<SceneEnding> {
    let SceneContext { directory: place, output: teller, .. } = theatre;
    teller.sentence("The server shuts down in good order and signs what it wrote.\n")?;
    place.stop()?;
    teller.text("  $ rutter journal verify\n")?;
    let (code, intact) = place.run_command(&["journal", "verify", "--require", "v1"])?;
    let words = format!("{} entries of {} journals are intact", intact["entries"], intact["executions"]);
    teller.text(&format!("  {words}, and signed\n\n"))?;

    let copy = place.path().join(COPY);
    fs::create_dir(&copy)?;
    let database = copy.join("rutter.db");
    let (copied, _) = place.run_command(&["db", "backup", &database.display().to_string()])?;
    ensure!(copied == Some(0), "the database could not be copied{}", place.log());
    fs::copy(place.data().join("ledger.pub"), copy.join("ledger.pub"))?;
    let mut bytes = fs::read(&database)?;
    let amount = br#""amount":1290"#;
    let at = bytes.windows(amount.len()).position(|window| window == amount);
    let at = at.context("the amount is not in the database")? + amount.len() - 2;
    bytes[at] ^= 1;
    fs::write(&database, bytes)?;
    teller
        .sentence("In a copy of the database one bit is flipped: the charge of 1290 EUR becomes one of 1280 EUR.\n")?;
    teller.text("  $ rutter journal verify --dir copy\n")?;
    let (found, json) = place.run_command(&["journal", "verify", "--dir", COPY])?;
    let fault = &json["fault"];
    let place_of = format!("entry {} of {}", fault["seq"], text(&fault["execution_id"]));
    teller.text(&format!("{}\n", wrapped_to(&format!("  {place_of}: {}", text(&fault["message"])), 4, WIDTH)))?;

    let mut ending = SceneEnding::new("the flipped bit was found and its entry named");
    ending.check("the database is intact and signed", code == Some(0) && intact["uncovered"] == 0);
    ending.check("the copy is not", found == Some(1) && json["is_clean"] == false);
    ending.check("the first bad entry is named", fault["seq"].is_u64() && fault["execution_id"].is_string());
    Ok(ending)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
