//! The journal: everything is intact, and one flipped bit in a copy is found and named.

use super::Theatre;
use crate::demo::ending::Ending;
use crate::demo::teller::WIDTH;
use crate::table::wrapped_to;
use anyhow::{Context, ensure};
use serde_json::Value;
use std::fs;

/// Where the copy is, within the demo's directory.
pub(crate) const COPY: &str = "copy";

pub(super) fn play(theatre: &Theatre<'_>) -> anyhow::Result<Ending> {
    let Theatre { place, teller, .. } = theatre;
    teller.say("The server ends in good order, which signs what it wrote.\n")?;
    place.stop()?;
    teller.text("  $ rutter journal verify\n")?;
    let (code, intact) = place.type_in(&["journal", "verify", "--require", "v1"])?;
    let words = format!("{} entries of {} journals are intact", intact["entries"], intact["executions"]);
    teller.text(&format!("  {words}, and signed\n\n"))?;

    let copy = place.path().join(COPY);
    fs::create_dir(&copy)?;
    let database = copy.join("rutter.db");
    let (copied, _) = place.type_in(&["db", "backup", &database.display().to_string()])?;
    ensure!(copied == Some(0), "the database could not be copied{}", place.log());
    fs::copy(place.data().join("ledger.pub"), copy.join("ledger.pub"))?;
    let mut bytes = fs::read(&database)?;
    let amount = br#""amount":1290"#;
    let at = bytes.windows(amount.len()).position(|window| window == amount);
    let at = at.context("the amount is not in the database")? + amount.len() - 2;
    bytes[at] ^= 1;
    fs::write(&database, bytes)?;
    teller.say(
        "In a copy of the database one bit is flipped: the charge of 1290 EUR becomes one of 1280 EUR.\n",
    )?;
    teller.text("  $ rutter journal verify --dir copy\n")?;
    let (found, told) = place.type_in(&["journal", "verify", "--dir", COPY])?;
    let fault = &told["fault"];
    let place_of = format!("entry {} of {}", fault["seq"], text(&fault["execution"]));
    teller.text(&format!(
        "{}\n",
        wrapped_to(&format!("  {place_of}: {}", text(&fault["message"])), 4, WIDTH)
    ))?;

    let mut ending = Ending::new("the flipped bit was found and its entry named");
    ending.check("the database is intact and signed", code == Some(0) && intact["uncovered"] == 0);
    ending.check("the copy is not", found == Some(1) && told["intact"] == false);
    ending.check("the first bad entry is named", fault["seq"].is_u64() && fault["execution"].is_string());
    Ok(ending)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
