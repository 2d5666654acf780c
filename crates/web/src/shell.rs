//! The frame of every page: navigation, counts, user, theme and flash message.

use super::assets;
use super::page::{self, FormRequest, PageRequest, PageResult};
use super::theme::{COOKIE_NAME, ColorTheme};
use askama::Template;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::SET_COOKIE;
use rutter_app::app::App;
use rutter_app::auth::secret;
use rutter_app::error::AppError;
use rutter_app::principal::Principal;
use rutter_app::rights::{self, Operation};
use rutter_app::verb::Verb;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::journal::label::KINDS;
use rutter_core::port::query::{ExecutionFilter, Pagination};
use rutter_core::time::Timestamp;
use std::sync::Arc;

/// Open questions are counted up to this; more are "99+".
pub(super) const WAITING_MAX: u32 = 100;
/// The shortest interval between two updates of a page.
const INTERVAL_MS: u32 = 250;

/// The data of the frame. Each template has one as `shell`.
#[derive(Clone, Debug)]
pub struct PageShell {
    pub title: String,
    pub section: PageSection,
    pub principal: Principal,
    pub person: String,
    /// The scopes of the user, as text.
    pub rights: String,
    pub csrf: String,
    pub theme: ColorTheme,
    pub badges: NavigationBadges,
    pub flash: Option<FlashMessage>,
    pub path: String,
    /// The event stream that updates the page; empty when the page is static.
    pub live: String,
    /// The ledger position when the page was rendered; the stream starts there.
    pub position: u64,
    pub interval_ms: u32,
    pub now: Timestamp,
}

impl PageShell {
    /// The key of a form: sent twice, it takes effect once.
    pub fn form_key(&self) -> String {
        secret::fresh()
    }

    /// The frame of a page in a section.
    pub async fn open(
        app: &App,
        request: &PageRequest,
        section: PageSection,
        title: impl Into<String>,
    ) -> Result<PageShell, AppError> {
        let asking = ExecutionFilter { asking: true, ..ExecutionFilter::default() };
        // Read first, so that events during rendering come with the stream.
        let place = app.feed.size(&request.principal.tenant).await?;
        let asking = app.query.executions(&request.principal.tenant, asking, Pagination::first(WAITING_MAX)).await?;
        let badges = NavigationBadges { waiting: asking.items.len() };
        Ok(PageShell { badges, position: place, now: app.now(), ..PageShell::bare(request, section, title) })
    }

    /// A frame without database lookups.
    pub fn bare(request: &PageRequest, section: PageSection, title: impl Into<String>) -> PageShell {
        let scopes: Vec<&str> = request.principal.scopes.iter().map(|scope| scope.as_str()).collect();
        PageShell {
            title: title.into(),
            section,
            person: request.principal.person.clone(),
            rights: format!("scopes: {}", scopes.join(", ")),
            principal: request.principal.clone(),
            csrf: request.csrf.clone(),
            theme: request.theme,
            badges: NavigationBadges::default(),
            flash: request.query_value("said").and_then(FlashMessage::of),
            path: request.path.clone(),
            live: String::new(),
            position: 0,
            interval_ms: INTERVAL_MS,
            now: Timestamp(0),
        }
    }

    /// Updates the page with the events of this stream.
    pub fn live(mut self, stream: impl Into<String>) -> PageShell {
        self.live = stream.into();
        self
    }

    /// Whether to show what belongs to an operation.
    pub fn may(&self, operation: Operation) -> bool {
        rights::may(&self.principal, operation)
    }

    /// Whether to offer commands that every operator of executions may send.
    pub fn may_command(&self) -> bool {
        rights::may_send(&self.principal, Verb::Pause)
    }

    pub fn asset(&self, name: &str) -> String {
        assets::address(name)
    }

    /// The kinds of events a stream may send, for the script.
    pub fn kinds(&self) -> String {
        KINDS.join(" ")
    }

    pub fn navigation(&self) -> Vec<NavigationItem> {
        PageSection::RAIL.iter().map(|section| NavigationItem::of(*section, self)).collect()
    }

    pub fn keys(&self) -> &'static [(&'static str, &'static str)] {
        KEYS
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSection {
    Overview,
    Plans,
    Executions,
    Approvals,
    Journal,
    Tools,
    Analytics,
    Alerts,
    Settings,
    /// A page outside of the sections.
    None,
}

impl PageSection {
    const RAIL: [PageSection; 9] = [
        PageSection::Overview,
        PageSection::Plans,
        PageSection::Executions,
        PageSection::Approvals,
        PageSection::Journal,
        PageSection::Tools,
        PageSection::Analytics,
        PageSection::Alerts,
        PageSection::Settings,
    ];

    /// Path, label, and the shortcut key after `g`.
    fn about(self) -> (&'static str, &'static str, &'static str) {
        match self {
            PageSection::Overview => ("/", "Overview", "o"),
            PageSection::Plans => ("/plans", "Plans", "p"),
            PageSection::Executions => ("/executions", "Executions", "e"),
            PageSection::Approvals => ("/approvals", "Approvals", "a"),
            PageSection::Journal => ("/journal", "Journal", "j"),
            PageSection::Tools => ("/tools", "Tools", "t"),
            PageSection::Analytics => ("/analytics", "Analytics", "n"),
            PageSection::Alerts => ("/alerts", "Alerts", "l"),
            PageSection::Settings => ("/settings", "Settings", "s"),
            PageSection::None => ("/", "", ""),
        }
    }
}

#[derive(Clone, Debug)]
pub struct NavigationItem {
    pub href: &'static str,
    pub label: &'static str,
    pub key: &'static str,
    pub icon: String,
    pub current: bool,
    pub count: usize,
    pub count_of: &'static str,
}

impl NavigationItem {
    fn of(section: PageSection, shell: &PageShell) -> NavigationItem {
        let (href, label, key) = section.about();
        let (count, count_of) = match section {
            PageSection::Approvals => (shell.badges.waiting, "waiting"),
            _ => (0, ""),
        };
        let (icon, current) = (label.to_lowercase(), section == shell.section);
        NavigationItem { href, label, key, icon, current, count, count_of }
    }

    pub fn count_text(&self) -> String {
        match self.count {
            count if count >= WAITING_MAX as usize => "99+".to_owned(),
            count => count.to_string(),
        }
    }
}

/// Counts next to the sections.
#[derive(Clone, Copy, Debug, Default)]
pub struct NavigationBadges {
    /// Executions with open questions.
    pub waiting: usize,
}

/// A message about the last action, shown once on the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlashMessage {
    pub tone: &'static str,
    pub text: String,
}

/// The only messages a URL can show, so that a link cannot put arbitrary text on a page. A number after a dash is a
/// count: `cancelled-3`.
pub const FLASH_MESSAGES: &[(&str, &str)] = &[
    ("answered", "Your answer is recorded."),
    ("approved", "Approved. The call is made exactly as shown."),
    ("rejected", "Rejected. The call is not made."),
    ("settled", "Settled. Your statement is recorded."),
    ("corrected", "Corrected. Your statement is recorded."),
    ("paused", "Paused: nothing new starts."),
    ("resumed", "Resumed."),
    ("cancelled", "Cancelling: running calls end, and completed steps are undone if the plan says so."),
    ("killed", "Killed, without clean-up."),
    ("started", "Started."),
    ("undoing", "Undo started."),
    ("reopened", "Reopened: what failed is tried again."),
    ("handed_over", "Handed over."),
    ("signed", "Checkpoint signed."),
    ("nothing_new", "There are no new entries to sign."),
    ("saved", "Saved."),
    ("plan_archived", "Archived: it is not listed and cannot be started."),
    ("plan_restored", "Restored."),
    ("plan_renamed", "Renamed, as a new revision."),
    ("plan_deleted", "The plan is deleted."),
    ("removed", "Removed."),
    ("sent", "Sent."),
    ("asked", "Tool lists refreshed."),
    ("revoked", "Revoked: the key no longer gives access."),
    ("signed_out", "Signed out."),
    ("acknowledged", "Acknowledged: the notification is not repeated."),
    ("silenced", "Silenced."),
    ("sent_again", "Queued to be sent again."),
    ("reset", "Circuit breaker reset."),
    ("nothing_chosen", "Nothing was selected."),
];

impl FlashMessage {
    fn of(message: &str) -> Option<FlashMessage> {
        let (word, count) = match message.rsplit_once('-') {
            Some((word, count)) => (word, Some(count.parse::<u32>().ok()?)),
            None => (message, None),
        };
        let (_, text) = FLASH_MESSAGES.iter().find(|(known, _)| *known == word)?;
        let text = count.map_or_else(|| (*text).to_owned(), |count| format!("{count} executions: {text}"));
        let tone = if word.starts_with("nothing") { "quiet" } else { "ok" };
        Some(FlashMessage { tone, text })
    }
}

pub const KEYS: &[(&str, &str)] = &[
    ("?", "show the shortcuts"),
    ("⌘ K", "command palette"),
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
    ("x", "select the row"),
    ("[ ]", "previous and next step"),
    ("1 … 5", "tabs"),
    ("f", "fit the graph"),
    ("+ - 0", "zoom the graph"),
    (".", "go to the first action"),
    ("Esc", "close, or leave a field"),
];

/// Stores the theme for browsers without scripts.
pub(super) async fn choose_theme(form: FormRequest) -> PageResult {
    let wrong = || AppError::new("server.arguments", "expected theme auto, light or dark");
    let theme = form.value("theme").and_then(ColorTheme::parse).ok_or_else(wrong)?;
    let mut response = page::redirect_with_flash(form.back(), "");
    let chosen = format!("{COOKIE_NAME}={theme}; Path=/; Max-Age=31536000; SameSite=Strict");
    let chosen = HeaderValue::from_str(&chosen).expect("theme names are ASCII letters");
    response.headers_mut().insert(SET_COOKIE, chosen);
    Ok(response)
}

#[derive(Template)]
#[template(path = "help.html")]
struct HelpPage {
    shell: PageShell,
    statuses: Vec<(super::format::StatusBadge, &'static str)>,
}

pub(super) async fn help(State(app): State<Arc<App>>, request: PageRequest) -> PageResult {
    let shell = PageShell::open(&app, &request, PageSection::None, "Help").await?;
    let meaning = |status: ExecutionStatus| match status {
        ExecutionStatus::Pending => "created, not started",
        ExecutionStatus::Running => "calls tools",
        ExecutionStatus::Paused => "starts nothing new until it is resumed",
        ExecutionStatus::Waiting => "waits until a person answers",
        ExecutionStatus::Replanning => "waits for a changed plan",
        ExecutionStatus::Compensating => "undoes its effects",
        ExecutionStatus::Completed => "ended successfully",
        ExecutionStatus::Partial => "ended with some steps not done",
        ExecutionStatus::Failed => "ended unsuccessfully",
        ExecutionStatus::Cancelled => "ended by a cancel command",
        ExecutionStatus::Compensated => "ended, effects undone",
    };
    let statuses = ExecutionStatus::ALL
        .into_iter()
        .map(|status| (super::format::StatusBadge::of(status.as_str()), meaning(status)));
    page::render(&HelpPage { shell, statuses: statuses.collect() })
}
