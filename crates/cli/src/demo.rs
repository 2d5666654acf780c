//! `rutter demo`: Rutter's main job in six scenes, in this process, with tools that the demo plays itself.

mod ending;
mod journal;
mod narrate;
mod scenes;
mod stage;
mod teller;
mod tools;

use crate::Exit;
use crate::args::DemoArgs;
use crate::report::plural;
use crate::table::Paint;
use crate::terminal::Terminal;
use anyhow::Context;
use ending::Ending;
use journal::Book;
use scenes::{ALTERED_EXPORT, SCENES, Theatre};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use teller::Teller;

/// Long enough to follow a line, short enough for a few seconds in all.
const PAUSE: Duration = Duration::from_millis(60);
/// More counters than this are told as a sum.
const COUNTERS_MAX: usize = 6;

pub(crate) fn run(args: &DemoArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let pause = if args.fast || !terminal.is_interactive { Duration::ZERO } else { PAUSE };
    let teller = Teller::new(*terminal, args.json, pause);
    let folder = Folder::create(args.keep)?;
    let book = Book::open(&folder.path)?;
    let theatre = Theatre { terminal, teller: &teller, folder: &folder.path, book };
    teller.say(
        "Rutter in six scenes. The compiler, the state machine, the store and the journal are the real ones; \
         the tools are played by this demo: nothing outside is called and nobody is charged.",
    )?;
    let mut endings = Vec::new();
    for ((title, shown, play), number) in SCENES.into_iter().zip(1..) {
        teller.open(number, title, shown)?;
        let ending = play(&theatre).with_context(|| format!("scene {number} broke off"))?;
        tell_ending(&teller, &ending)?;
        teller.close(ending.json(number, title))?;
        endings.push(ending);
    }
    sum_up(&teller, &endings)?;
    if args.keep {
        let place = folder.path.display();
        terminal.remark(&format!(
            "kept in {place}; try:\n  \
             rutter journal verify --dir {place}\n  \
             rutter journal tail --dir {place}\n  \
             rutter journal verify --export {place}/{ALTERED_EXPORT}\n"
        ));
    }
    let is_as_told = endings.iter().all(Ending::is_as_told);
    Ok(if is_as_told { Exit::Done } else { Exit::Internal })
}

fn tell_ending(teller: &Teller, ending: &Ending) -> anyhow::Result<()> {
    let effects: u64 = ending.effects.values().sum();
    let counted = match ending.effects.len() {
        0 => String::new(),
        1..=COUNTERS_MAX => {
            let counts = ending.effects.iter().map(|(tool, effects)| format!("{tool}={effects}"));
            format!("Effects: {}", counts.collect::<Vec<_>>().join(", "))
        }
        tools => format!("Effects: {effects}, of {tools} tools"),
    };
    if !counted.is_empty() {
        teller.say(&format!("\n{counted}"))?;
    }
    let gap = if counted.is_empty() { "\n" } else { "" };
    teller.text(&format!("{gap}{}\n", Paint::Green.on(&format!("End: {}", ending.words))))?;
    for promise in ending.broken() {
        teller.text(&format!("{}\n", Paint::Red.on(&format!("Not as told: {promise}"))))?;
    }
    Ok(())
}

fn sum_up(teller: &Teller, endings: &[Ending]) -> anyhow::Result<()> {
    let calls: u64 = endings.iter().map(|ending| ending.calls).sum();
    let effects: u64 = endings.iter().flat_map(|ending| ending.effects.values()).sum();
    let twice: u64 = endings.iter().map(|ending| ending.done_twice).sum();
    let scenes = plural(endings.len(), "scene");
    let sum = format!("{scenes}, {calls} calls, {effects} effects, {twice} done twice");
    teller.text(&format!("\n{}\n", Paint::Bold.on(&sum)))?;
    teller.text(
        "\nTry next:\n  \
         rutter plan check examples/order.yaml --tools examples/tools.json\n  \
         rutter plan preview examples/order.yaml --tools examples/tools.json\n  \
         rutter demo --keep    and `rutter journal` on the database it keeps\n",
    )?;
    Ok(())
}

/// A directory for the database that goes away with the demo unless it is to be kept.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    is_kept: bool,
}

impl Folder {
    fn create(is_kept: bool) -> anyhow::Result<Folder> {
        let name = u64::from_be_bytes(journal::random()?);
        let path = std::env::temp_dir().join(format!("rutter-demo-{name:016x}"));
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Folder { path, is_kept })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            // Nobody is left who could be told that this failed.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
