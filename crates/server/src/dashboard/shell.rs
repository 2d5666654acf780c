//! The frame around every page: where one is, what waits, who one is, and what was just done.

use super::assets;
use super::page::{self, Answer, Posted, Visitor, cookie};
use crate::auth::Scope;
use crate::desk::Desk;
use crate::fault::Fault;
use crate::guest::Guest;
use askama::Template;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use rutter_core::execution::view::Status;
use rutter_core::journal::label::KINDS;
use rutter_core::port::query::{ExecutionFilter, Page};
use rutter_core::time::Timestamp;
use std::fmt;
use std::sync::Arc;

const THEME: &str = "rutter_theme";
/// How many that wait are counted; more are "99+".
pub(super) const WAITING_MAX: u32 = 100;
/// How often a page is brought up to date at the most.
const INTERVAL_MS: u32 = 250;

/// Everything the frame shows. Each template has one as `shell`.
#[derive(Clone, Debug)]
pub struct Shell {
    pub title: String,
    pub section: Section,
    pub guest: Guest,
    pub person: String,
    /// What the guest may do, in words.
    pub rights: String,
    pub csrf: String,
    pub theme: Theme,
    pub badges: Badges,
    pub flash: Option<Flash>,
    pub path: String,
    /// The stream whose events bring the page up to date; empty when the page does not change by itself.
    pub live: String,
    /// How far the ledger went when the page was written; the stream goes on from there.
    pub place: u64,
    pub interval_ms: u32,
    pub now: Timestamp,
}

impl Shell {
    /// The frame of a page in a section.
    pub async fn open(
        desk: &Desk,
        visitor: &Visitor,
        section: Section,
        title: impl Into<String>,
    ) -> Result<Shell, Fault> {
        let asking = ExecutionFilter { asking: true, ..ExecutionFilter::default() };
        // First, so that what happens while the page is written comes with the stream.
        let place = desk.feed.size(&visitor.guest.tenant).await?;
        let asking = desk.query.executions(&visitor.guest.tenant, asking, Page::first(WAITING_MAX)).await?;
        let badges = Badges { waiting: asking.items.len() };
        Ok(Shell { badges, place, now: desk.engine.now(), ..Shell::bare(visitor, section, title) })
    }

    /// Without anything that would have to be looked up.
    pub fn bare(visitor: &Visitor, section: Section, title: impl Into<String>) -> Shell {
        let scopes: Vec<&str> = visitor.guest.scopes.iter().map(|scope| scope.as_str()).collect();
        Shell {
            title: title.into(),
            section,
            person: visitor.guest.person.clone(),
            rights: format!("you may: {}", scopes.join(", ")),
            guest: visitor.guest.clone(),
            csrf: visitor.csrf.clone(),
            theme: visitor.theme,
            badges: Badges::default(),
            flash: visitor.asked("said").and_then(Flash::of),
            path: visitor.path.clone(),
            live: String::new(),
            place: 0,
            interval_ms: INTERVAL_MS,
            now: Timestamp(0),
        }
    }

    /// Brings the page up to date with the events of this stream.
    pub fn live(mut self, stream: impl Into<String>) -> Shell {
        self.live = stream.into();
        self
    }

    pub fn may_operate(&self) -> bool {
        self.guest.may(Scope::Operate)
    }

    pub fn may_approve(&self) -> bool {
        self.guest.may(Scope::Approve)
    }

    pub fn may_administer(&self) -> bool {
        self.guest.may(Scope::Admin)
    }

    pub fn asset(&self, name: &str) -> String {
        assets::address(name)
    }

    /// The kinds of events a stream may send, for the script that listens.
    pub fn kinds(&self) -> String {
        KINDS.join(" ")
    }

    pub fn rail(&self) -> Vec<RailItem> {
        Section::RAIL.iter().map(|section| RailItem::of(*section, self)).collect()
    }

    pub fn keys(&self) -> &'static [(&'static str, &'static str)] {
        KEYS
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Overview,
    Plans,
    Executions,
    Approvals,
    Journal,
    Tools,
    Analytics,
    Alerts,
    Settings,
    /// A page that belongs to none.
    None,
}

impl Section {
    const RAIL: [Section; 9] = [
        Section::Overview,
        Section::Plans,
        Section::Executions,
        Section::Approvals,
        Section::Journal,
        Section::Tools,
        Section::Analytics,
        Section::Alerts,
        Section::Settings,
    ];

    /// Address, label, and the key that leads there after `g`.
    fn about(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Section::Overview => ("/", "Overview", "o"),
            Section::Plans => ("/plans", "Plans", "p"),
            Section::Executions => ("/executions", "Executions", "e"),
            Section::Approvals => ("/approvals", "Approvals", "a"),
            Section::Journal => ("/journal", "Journal", "j"),
            Section::Tools => ("/tools", "Tools", "t"),
            Section::Analytics => ("/analytics", "Analytics", "n"),
            Section::Alerts => ("/alerts", "Alerts", "l"),
            Section::Settings => ("/settings", "Settings", "s"),
            Section::None => ("/", "", ""),
        }
    }
}

#[derive(Clone, Debug)]
pub struct RailItem {
    pub href: &'static str,
    pub label: &'static str,
    pub key: &'static str,
    pub icon: String,
    pub current: bool,
    pub count: usize,
    pub count_of: &'static str,
}

impl RailItem {
    fn of(section: Section, shell: &Shell) -> RailItem {
        let (href, label, key) = section.about();
        let (count, count_of) = match section {
            Section::Approvals => (shell.badges.waiting, "wait for somebody"),
            _ => (0, ""),
        };
        let (icon, current) = (label.to_lowercase(), section == shell.section);
        RailItem { href, label, key, icon, current, count, count_of }
    }

    pub fn count_text(&self) -> String {
        match self.count {
            count if count >= WAITING_MAX as usize => "99+".to_owned(),
            count => count.to_string(),
        }
    }
}

/// Numbers beside the sections.
#[derive(Clone, Copy, Debug, Default)]
pub struct Badges {
    /// Executions that wait for somebody.
    pub waiting: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// What the system has.
    #[default]
    Auto,
    Light,
    Dark,
}

impl Theme {
    fn parse(text: &str) -> Option<Theme> {
        [Theme::Auto, Theme::Light, Theme::Dark].into_iter().find(|theme| theme.to_string() == text)
    }

    pub(super) fn of(headers: &HeaderMap) -> Theme {
        cookie(headers, THEME).and_then(Theme::parse).unwrap_or_default()
    }

    pub fn next(&self) -> Theme {
        match self {
            Theme::Auto => Theme::Dark,
            Theme::Dark => Theme::Light,
            Theme::Light => Theme::Auto,
        }
    }

    pub fn word(&self) -> &'static str {
        match self {
            Theme::Auto => "◐ Auto",
            Theme::Light => "○ Light",
            Theme::Dark => "● Dark",
        }
    }
}

impl fmt::Display for Theme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Theme::Auto => "auto",
            Theme::Light => "light",
            Theme::Dark => "dark",
        })
    }
}

/// What was just done, told once on the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flash {
    pub tone: &'static str,
    pub text: String,
}

/// An address can say only these, so that nobody can put words of their own on a page with a link. A number behind a
/// dash says how many: `cancelled-3`.
pub const SAYINGS: &[(&str, &str)] = &[
    ("answered", "Your answer is on record."),
    ("approved", "Approved. The call is made as you saw it."),
    ("rejected", "Rejected. The call is not made."),
    ("settled", "Settled. What you said is on record as a person's word."),
    ("paused", "Paused: nothing new begins."),
    ("resumed", "Resumed."),
    ("cancelled", "Cancelling: what is under way ends, and is undone where the plan says so."),
    ("killed", "Killed, without clean-up."),
    ("started", "Started."),
    ("undoing", "Undoing began."),
    ("handed_over", "Handed over."),
    ("signed", "The head of the ledger is signed."),
    ("nothing_new", "There was nothing new to sign."),
    ("saved", "Saved."),
    ("removed", "Removed."),
    ("sent", "Sent."),
    ("asked", "The servers were asked which tools they have."),
    ("revoked", "Revoked: nobody comes in with that key any more."),
    ("signed_out", "Signed out."),
    ("acknowledged", "You see to it; nobody is told again."),
    ("silenced", "Silenced for a while."),
    ("sent_again", "It is sent again."),
    ("reset", "The server gets another chance at once."),
    ("nothing_chosen", "Nothing was chosen."),
];

impl Flash {
    fn of(said: &str) -> Option<Flash> {
        let (word, count) = match said.rsplit_once('-') {
            Some((word, count)) => (word, Some(count.parse::<u32>().ok()?)),
            None => (said, None),
        };
        let (_, text) = SAYINGS.iter().find(|(known, _)| *known == word)?;
        let text = count.map_or_else(|| (*text).to_owned(), |count| format!("{count} executions: {text}"));
        let tone = if word.starts_with("nothing") { "quiet" } else { "ok" };
        Some(Flash { tone, text })
    }
}

pub const KEYS: &[(&str, &str)] = &[
    ("?", "these keys"),
    ("⌘ K", "go to anything"),
    ("/", "filter or search"),
    ("g o", "Overview"),
    ("g p", "Plans"),
    ("g e", "Executions"),
    ("g a", "Approvals"),
    ("g j", "Journal"),
    ("g t", "Tools"),
    ("g n", "Analytics"),
    ("g l", "Alerts"),
    ("g s", "Settings"),
    ("j k", "next and previous row"),
    ("Enter", "open the row"),
    ("x", "choose the row"),
    ("[ ]", "previous and next step"),
    ("1 … 5", "tabs"),
    ("f", "fit the graph"),
    ("+ - 0", "zoom the graph"),
    (".", "first action"),
    ("Esc", "close, or leave a field"),
];

/// Remembers the theme where no script does.
pub(super) async fn choose_theme(posted: Posted) -> Answer {
    let wrong = || Fault::new("server.arguments", "the theme is auto, light or dark");
    let theme = posted.said("theme").and_then(Theme::parse).ok_or_else(wrong)?;
    let mut response = page::go(posted.back(), "");
    let chosen = format!("{THEME}={theme}; Path=/; Max-Age=31536000; SameSite=Strict");
    let chosen = HeaderValue::from_str(&chosen).expect("the names of themes are plain letters");
    response.headers_mut().insert(SET_COOKIE, chosen);
    Ok(response)
}

#[derive(Template)]
#[template(path = "help.html")]
struct Help {
    shell: Shell,
    statuses: Vec<(super::format::Look, &'static str)>,
}

pub(super) async fn help(State(desk): State<Arc<Desk>>, visitor: Visitor) -> Answer {
    let shell = Shell::open(&desk, &visitor, Section::None, "Help").await?;
    let meaning = |status: Status| match status {
        Status::Pending => "on record, not begun",
        Status::Running => "calls are made",
        Status::Paused => "nothing new begins until somebody resumes it",
        Status::Waiting => "nothing moves until somebody answers",
        Status::Replanning => "somebody changes the plan",
        Status::Compensating => "effects are being undone",
        Status::Completed => "the goal is reached",
        Status::Partial => "ended with some steps left out",
        Status::Failed => "ended without reaching the goal",
        Status::Cancelled => "stopped by somebody",
        Status::Compensated => "ended, and its effects were undone",
    };
    let statuses =
        Status::ALL.into_iter().map(|status| (super::format::Look::of(status.as_str()), meaning(status)));
    page::show(&Help { shell, statuses: statuses.collect() })
}
