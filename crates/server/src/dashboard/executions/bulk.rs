//! The same for several executions at once, after a page that says for how many.

use super::Row;
use crate::auth::{Scope, require};
use crate::dashboard::page::{self, Answer, Posted};
use crate::dashboard::shell::{Section, Shell};
use crate::desk::Desk;
use crate::fault::Fault;
use askama::Template;
use axum::extract::State;
use rutter_engine::control::Control;
use std::sync::Arc;

/// A page of the list has fewer.
const CHOSEN_MAX: usize = 100;

#[derive(Template)]
#[template(path = "executions_confirm.html")]
struct Confirm {
    shell: Shell,
    act: Act,
    rows: Vec<Row>,
    back: String,
}

#[derive(Template)]
#[template(path = "executions_done.html")]
struct Done {
    shell: Shell,
    act: Act,
    done: usize,
    refused: Vec<(Row, Fault)>,
    back: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Pause,
    Resume,
    Cancel,
}

impl Act {
    fn parse(text: &str) -> Option<Act> {
        [Act::Pause, Act::Resume, Act::Cancel].into_iter().find(|act| act.name() == text)
    }

    fn name(&self) -> &'static str {
        match self {
            Act::Pause => "pause",
            Act::Resume => "resume",
            Act::Cancel => "cancel",
        }
    }

    fn title(&self) -> &'static str {
        match self {
            Act::Pause => "Pause",
            Act::Resume => "Resume",
            Act::Cancel => "Cancel",
        }
    }

    fn meaning(&self) -> &'static str {
        match self {
            Act::Pause => "Nothing new begins until somebody resumes them. Calls under way end.",
            Act::Resume => "They go on where they were paused.",
            Act::Cancel => {
                "Calls under way end, nothing new begins, and what was done is undone where the plan says so."
            }
        }
    }

    fn said(&self) -> &'static str {
        match self {
            Act::Pause => "paused",
            Act::Resume => "resumed",
            Act::Cancel => "cancelled",
        }
    }

    fn control(&self) -> Control {
        match self {
            Act::Pause => Control::Pause,
            Act::Resume => Control::Resume,
            Act::Cancel => Control::Cancel { undo: None },
        }
    }
}

pub(in crate::dashboard) async fn run(State(desk): State<Arc<Desk>>, posted: Posted) -> Answer {
    let visitor = &posted.visitor;
    require(&visitor.guest, Scope::Operate)?;
    let wrong = |message: &str| Fault::new("server.arguments", message);
    let act = posted.said("action").and_then(Act::parse);
    let act = act.ok_or_else(|| wrong("the action is pause, resume or cancel"))?;
    let chosen: Vec<&str> = posted.all_said("execution").collect();
    if chosen.is_empty() {
        return Ok(page::go(posted.back(), "nothing_chosen"));
    }
    if chosen.len() > CHOSEN_MAX {
        return Err(wrong("choose at most 100 executions at once").into());
    }
    let now = desk.engine.now();
    let mut rows = Vec::new();
    for id in chosen {
        let found = desk.query.execution(&visitor.identity(id)).await?;
        rows.push(Row::of(&found.ok_or_else(|| Fault::missing("execution", id))?, now));
    }
    let back = posted.back().to_owned();
    let title = format!("{} {} executions", act.title(), rows.len());
    let Some(reason) = posted.said("reason").filter(|_| posted.said("confirm").is_some()) else {
        let shell = Shell::open(&desk, visitor, Section::Executions, title).await?;
        return page::show(&Confirm { shell, act, rows, back });
    };
    let (mut done, mut refused) = (0, Vec::new());
    for row in rows {
        let (identity, actor) = (visitor.identity(&row.id.full), visitor.guest.actor());
        match desk.engine.control(&identity, actor, act.control(), reason.to_owned(), None).await {
            Ok(()) => done += 1,
            Err(error) => refused.push((row, error.into())),
        }
    }
    if refused.is_empty() {
        return Ok(page::go(&back, &format!("{}-{done}", act.said())));
    }
    let shell = Shell::open(&desk, visitor, Section::Executions, title).await?;
    page::show(&Done { shell, act, done, refused, back })
}
