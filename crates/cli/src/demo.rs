//! `rutter demo`: Rutter's main features in six scenes. A real server in a temporary directory, tools in separate
//! processes, effects that are counted where they happen, and a kill with -9.

mod directory;
mod ending;
mod output;
mod pipe;
mod processes;
mod scenes;
pub(crate) mod tools;
mod watch;

use crate::args::DemoArgs;
use crate::exit::CommandExit;
use crate::report::plural;
use crate::table::CellColor;
use crate::terminal::Terminal;
use anyhow::Context;
use directory::DemoDirectory;
use ending::SceneEnding;
use output::DemoOutput;
use scenes::{SCENES, SceneContext};
use std::path::Path;
use std::time::Duration;

/// Long enough to follow a line, short enough for a few seconds in all.
const PAUSE: Duration = Duration::from_millis(60);

pub(crate) fn run(args: &DemoArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let pause = if args.fast || !terminal.is_interactive { Duration::ZERO } else { PAUSE };
    let teller = DemoOutput::new(*terminal, args.json, pause);
    let place = DemoDirectory::make(args.keep)?;
    teller.sentence(
        "Rutter in six scenes. The server, its database and its journal are real, in a temporary directory; \
         the tools are separate processes that log every effect. Nothing outside is called and no card is \
         charged.",
    )?;
    place.start()?;
    let theatre = SceneContext { output: &teller, directory: &place };
    let mut endings = Vec::new();
    for (scene, number) in SCENES.into_iter().zip(1..) {
        teller.open(number, scene.title, scene.description)?;
        let ending = (scene.play)(&theatre).with_context(|| format!("scene {number} failed"))?;
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
    let is_as_promised = endings.iter().all(SceneEnding::is_as_promised);
    Ok(if is_as_promised { CommandExit::Done } else { CommandExit::Internal })
}

fn tell_ending(teller: &DemoOutput, ending: &SceneEnding) -> anyhow::Result<()> {
    let gap = match ending.effects.is_empty() {
        true => "\n",
        false => {
            let counts = ending.effects.iter().map(|(tool, effects)| format!("{tool} {effects}"));
            teller.sentence(&format!("\nLogged by the tools: {}", counts.collect::<Vec<_>>().join(", ")))?;
            ""
        }
    };
    teller.text(&format!("{gap}{}\n", CellColor::Green.on(&format!("End: {}", ending.words))))?;
    for promise in ending.broken() {
        teller.text(&format!("{}\n", CellColor::Red.on(&format!("Not as promised: {promise}"))))?;
    }
    Ok(())
}

fn sum_up(teller: &DemoOutput, endings: &[SceneEnding]) -> anyhow::Result<()> {
    let calls: usize = endings.iter().map(|ending| ending.calls).sum();
    let effects: usize = endings.iter().flat_map(|ending| ending.effects.values()).sum();
    let twice: usize = endings.iter().map(|ending| ending.done_twice).sum();
    let scenes = plural(endings.len(), "scene");
    let sum = format!("{scenes}, {calls} calls, {effects} effects, {twice} done twice");
    Ok(teller.text(&format!("\n{}\n", CellColor::Bold.on(&sum)))?)
}

fn how_to_connect() -> String {
    let program = program();
    format!(
        "\nConnect an agent:\n  \
         claude mcp add rutter -- {program} mcp\n  \
         codex mcp add rutter -- {program} mcp\n\
         Explore this demo's server: {program} demo --keep\n\
         Read more: README.md, docs/concepts.md, docs/recipes\n"
    )
}

fn how_to_go_on(place: &DemoDirectory) -> String {
    let (program, settings) = (program(), place.settings());
    let (settings, data) = (settings.display(), place.data());
    let (data, copy) = (data.display(), place.path().join(scenes::journal::COPY));
    let message = place.server_answer.borrow();
    let mcp = match (message["mcp"].as_str(), message["token_file"].as_str()) {
        (Some(address), Some(token)) => format!("  over HTTP: {address} with the token in {token}\n"),
        _ => String::new(),
    };
    format!(
        "\nThe server runs again: process {}.\n\
         Connect an agent:\n  claude mcp add rutter-demo -- {program} mcp --config {settings}\n{mcp}\
         Explore:\n  {program} exec list --dir {data}\n  {program} journal tail --dir {data}\n  \
         {program} journal verify --dir {}\n\
         Stop it, then remove its directory:\n  {program} stop --dir {data}\n  rm -r {}\n",
        place.server.get(),
        copy.display(),
        place.path().display(),
    )
}

/// How to run this program: by its name if PATH finds it, otherwise by its path.
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
