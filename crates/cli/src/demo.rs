//! `rutter demo`: Rutter's main work in six scenes. A real server in a temporary directory, tools in processes of their
//! own, effects that are counted where they happen, and a kill with -9.

mod crew;
mod ending;
mod narrate;
mod pipe;
mod place;
mod scenes;
mod teller;
pub(crate) mod tools;
mod watch;

use crate::Exit;
use crate::args::DemoArgs;
use crate::report::plural;
use crate::table::Paint;
use crate::terminal::Terminal;
use anyhow::Context;
use ending::Ending;
use place::Place;
use scenes::{SCENES, Theatre};
use std::path::Path;
use std::time::Duration;
use teller::Teller;

/// Long enough to follow a line, short enough for a few seconds in all.
const PAUSE: Duration = Duration::from_millis(60);

pub(crate) fn run(args: &DemoArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let pause = if args.fast || !terminal.is_interactive { Duration::ZERO } else { PAUSE };
    let teller = Teller::new(*terminal, args.json, pause);
    let place = Place::make(args.keep)?;
    teller.say(
        "Rutter in six scenes. The server, its database and its journal are the real ones, in a temporary \
         directory; the tools are processes of their own that write every effect into a book. Nothing outside \
         is called and nobody is charged.",
    )?;
    place.start()?;
    let theatre = Theatre { teller: &teller, place: &place };
    let mut endings = Vec::new();
    for (scene, number) in SCENES.into_iter().zip(1..) {
        teller.open(number, scene.title, scene.shown)?;
        let ending = (scene.play)(&theatre).with_context(|| format!("scene {number} broke off"))?;
        tell_ending(&teller, &ending)?;
        teller.close(ending.json(number, scene.title))?;
        endings.push(ending);
    }
    sum_up(&teller, &endings)?;
    match args.keep {
        true => {
            place.keep()?;
            terminal.remark(&how_to_go_on(&place));
        }
        false => teller.text(&how_to_connect())?,
    }
    let is_as_told = endings.iter().all(Ending::is_as_told);
    Ok(if is_as_told { Exit::Done } else { Exit::Internal })
}

fn tell_ending(teller: &Teller, ending: &Ending) -> anyhow::Result<()> {
    let gap = match ending.effects.is_empty() {
        true => "\n",
        false => {
            let counts = ending.effects.iter().map(|(tool, effects)| format!("{tool} {effects}"));
            teller.say(&format!("\nIn the tools' book: {}", counts.collect::<Vec<_>>().join(", ")))?;
            ""
        }
    };
    teller.text(&format!("{gap}{}\n", Paint::Green.on(&format!("End: {}", ending.words))))?;
    for promise in ending.broken() {
        teller.text(&format!("{}\n", Paint::Red.on(&format!("Not as told: {promise}"))))?;
    }
    Ok(())
}

fn sum_up(teller: &Teller, endings: &[Ending]) -> anyhow::Result<()> {
    let calls: usize = endings.iter().map(|ending| ending.calls).sum();
    let effects: usize = endings.iter().flat_map(|ending| ending.effects.values()).sum();
    let twice: usize = endings.iter().map(|ending| ending.done_twice).sum();
    let scenes = plural(endings.len(), "scene");
    let sum = format!("{scenes}, {calls} calls, {effects} effects, {twice} done twice");
    Ok(teller.text(&format!("\n{}\n", Paint::Bold.on(&sum)))?)
}

fn how_to_connect() -> String {
    let program = program();
    format!(
        "\nConnect an agent:\n  \
         claude mcp add rutter -- {program} mcp\n  \
         codex mcp add rutter -- {program} mcp\n\
         Look around in this demo's server: {program} demo --keep\n\
         Read on: README.md, docs/concepts.md, docs/recipes\n"
    )
}

fn how_to_go_on(place: &Place) -> String {
    let (program, settings) = (program(), place.settings());
    let (settings, data) = (settings.display(), place.data());
    let (data, copy) = (data.display(), place.path().join(scenes::journal::COPY));
    let said = place.said.borrow();
    let mcp = match (said["mcp"].as_str(), said["token_file"].as_str()) {
        (Some(address), Some(token)) => format!("  over HTTP: {address} with the token in {token}\n"),
        _ => String::new(),
    };
    format!(
        "\nThe server is up again: process {}.\n\
         Connect an agent:\n  claude mcp add rutter-demo -- {program} mcp --config {settings}\n{mcp}\
         Look around:\n  {program} exec list --dir {data}\n  {program} journal tail --dir {data}\n  \
         {program} journal verify --dir {}\n\
         Stop it, then remove its directory:\n  {program} stop --dir {data}\n  rm -r {}\n",
        place.server.get(),
        copy.display(),
        place.path().display(),
    )
}

/// What to type for this program: its name where the shell finds it under that, otherwise where it is.
fn program() -> String {
    let name = env!("CARGO_BIN_NAME");
    let Ok(own) = std::env::current_exe() else { return name.to_owned() };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_own = |folder: &Path| folder.join(name).canonicalize().is_ok_and(|found| found == own);
    match std::env::split_paths(&path).any(|folder| is_own(&folder)) {
        true => name.to_owned(),
        false => own.display().to_string(),
    }
}
