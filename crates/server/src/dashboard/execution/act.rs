//! What can be done with an execution. What cannot be taken back is asked for twice, with what it would undo.

use super::seen;
use crate::auth::{Scope, require};
use crate::dashboard::format::{self, Id, Look};
use crate::dashboard::page::{self, Answer, Posted, Visitor};
use crate::dashboard::shell::{Section, Shell};
use crate::deed::rollback::Rollback;
use crate::desk::Desk;
use crate::fault::Fault;
use askama::Template;
use axum::extract::{Path, State};
use rutter_core::execution::view::{Status, View};
use rutter_core::id::StepId;
use rutter_core::plan::Driver;
use rutter_engine::control::Control;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Pause,
    Resume,
    Cancel,
    Undo,
    Kill,
    TakeOver,
    HandBack,
}

/// One button. Those that ask first are links to the page that asks, and open it as a dialog where scripts run.
pub(super) struct Offer {
    pub(super) act: Act,
    pub(super) confirm_href: String,
    pub(super) act_href: String,
}

impl Act {
    const ALL: [Act; 7] =
        [Act::Pause, Act::Resume, Act::Cancel, Act::Undo, Act::TakeOver, Act::HandBack, Act::Kill];

    fn parse(text: &str) -> Option<Act> {
        Act::ALL.into_iter().find(|act| act.name() == text)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Act::Pause => "pause",
            Act::Resume => "resume",
            Act::Cancel => "cancel",
            Act::Undo => "undo",
            Act::Kill => "kill",
            Act::TakeOver => "take_over",
            Act::HandBack => "hand_back",
        }
    }

    pub(super) fn label(self) -> &'static str {
        match self {
            Act::Pause => "Pause",
            Act::Resume => "Resume",
            Act::Cancel => "Cancel…",
            Act::Undo => "Undo…",
            Act::Kill => "Kill…",
            Act::TakeOver => "Hand to an agent…",
            Act::HandBack => "Give to Rutter…",
        }
    }

    pub(super) fn verb(self) -> &'static str {
        self.label().trim_end_matches('…')
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Act::Pause => "Pause it?",
            Act::Resume => "Resume it?",
            Act::Cancel => "Cancel it?",
            Act::Undo => "Undo what it did?",
            Act::Kill => "Kill it?",
            Act::TakeOver => "Hand it to an agent?",
            Act::HandBack => "Let Rutter go on with it?",
        }
    }

    pub(super) fn meaning(self) -> &'static str {
        match self {
            Act::Pause => "Nothing new begins until somebody resumes it. Calls under way end.",
            Act::Resume => "It goes on where it was paused.",
            Act::Cancel => "Calls under way end, and nothing new begins.",
            Act::Undo => "What it did is taken back, as far as that can be done.",
            Act::Kill => {
                "It stops at once and nothing is cleaned up. What was under way stays unknown. Cancel is the gentler way."
            }
            Act::TakeOver => {
                "Rutter stops calling tools; an agent calls them itself and records what it does."
            }
            Act::HandBack => "Rutter calls the tools that are left.",
        }
    }

    pub(super) fn class(self) -> &'static str {
        match self {
            Act::Pause | Act::TakeOver | Act::HandBack => "",
            Act::Resume => "main",
            Act::Cancel | Act::Undo | Act::Kill => "risky",
        }
    }

    /// Whether it can simply be done, because it can simply be taken back.
    pub(super) fn is_harmless(self) -> bool {
        matches!(self, Act::Pause | Act::Resume)
    }

    pub(super) fn shows_rollback(self) -> bool {
        matches!(self, Act::Cancel | Act::Undo)
    }

    fn said(self) -> &'static str {
        match self {
            Act::Pause => "paused",
            Act::Resume => "resumed",
            Act::Cancel => "cancelled",
            Act::Undo => "undoing",
            Act::Kill => "killed",
            Act::TakeOver | Act::HandBack => "handed_over",
        }
    }

    /// What makes sense now.
    pub(super) fn offers(view: &View, rollback: &Rollback, base: &str) -> Vec<Offer> {
        let is_fitting = |act: &Act| match act {
            Act::Pause => !view.status.has_ended() && view.status != Status::Paused,
            Act::Resume => view.status == Status::Paused,
            Act::Cancel | Act::Kill => !view.status.has_ended(),
            Act::Undo => view.status.has_ended() && !rollback.parts.is_empty(),
            Act::TakeOver => !view.status.has_ended() && view.driver == Driver::Server,
            Act::HandBack => !view.status.has_ended() && view.driver == Driver::Agent,
        };
        let offer = |act: Act| Offer {
            act,
            confirm_href: format!("{base}/confirm?act={}", act.name()),
            act_href: format!("{base}/act"),
        };
        Act::ALL.into_iter().filter(is_fitting).map(offer).collect()
    }

    fn control(self, posted: &Posted) -> Result<Control, Fault> {
        Ok(match self {
            Act::Pause => Control::Pause,
            Act::Resume => Control::Resume,
            Act::Kill => Control::Kill,
            Act::TakeOver => Control::TakeOver,
            Act::HandBack => Control::HandBack,
            Act::Undo => {
                let steps: Vec<StepId> = posted.all_said("step").map(StepId::new).collect();
                Control::Undo { steps: Some(steps).filter(|steps| !steps.is_empty()) }
            }
            Act::Cancel => Control::Cancel {
                undo: match posted.said("undo") {
                    None | Some("plan") => None,
                    Some("yes") => Some(true),
                    Some("no") => Some(false),
                    Some(_) => return Err(wrong("undo is plan, yes or no")),
                },
            },
        })
    }
}

#[derive(Template)]
#[template(path = "execution_confirm.html")]
struct Confirm {
    shell: Shell,
    id: Id,
    name: String,
    look: Look,
    offer: Offer,
    rollback: Rollback,
    step: String,
}

/// The page that asks, for those without scripts and for links.
pub(in crate::dashboard) async fn confirm(
    State(desk): State<Arc<Desk>>,
    Path(execution): Path<String>,
    visitor: Visitor,
) -> Answer {
    require(&visitor.guest, Scope::Operate)?;
    let act = visitor.asked("act").and_then(Act::parse).ok_or_else(|| wrong("there is no such action"))?;
    let seen = seen(&desk, &visitor.identity(&execution), "graph", None).await?;
    let shell = Shell::open(&desk, &visitor, Section::Executions, act.title()).await?;
    let base = format!("/executions/{}", format::encoded(&execution));
    let offer = Offer {
        act,
        confirm_href: format!("{base}/confirm?act={}", act.name()),
        act_href: format!("{base}/act"),
    };
    let confirm = Confirm {
        id: Id::execution(&execution),
        name: seen.view.plan.clone(),
        look: Look::of(seen.view.status.as_str()),
        offer,
        rollback: seen.rollback,
        step: visitor.asked("step").unwrap_or_default().to_owned(),
        shell,
    };
    page::show(&confirm)
}

pub(in crate::dashboard) async fn run(
    State(desk): State<Arc<Desk>>,
    Path(execution): Path<String>,
    posted: Posted,
) -> Answer {
    require(&posted.visitor.guest, Scope::Operate)?;
    let act = posted.said("act").and_then(Act::parse).ok_or_else(|| wrong("there is no such action"))?;
    let reason = match posted.said("reason") {
        Some(reason) => reason.to_owned(),
        None if act.is_harmless() => "on the dashboard".to_owned(),
        None => return Err(wrong("say why; it stands in the journal").into()),
    };
    let (identity, actor) = (posted.visitor.identity(&execution), posted.visitor.guest.actor());
    desk.engine.control(&identity, actor, act.control(&posted)?, reason, None).await?;
    Ok(page::go(&format!("/executions/{}", format::encoded(&execution)), act.said()))
}

fn wrong(message: &str) -> Fault {
    Fault::new("server.arguments", message)
}
