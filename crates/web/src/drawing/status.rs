//! How a status looks: a tone, a sign and a word, each of which is enough to recognize it.

/// The meaning of a status, and its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatusTone {
    Ok,
    Muted,
    Run,
    Warn,
    Wait,
    Bad,
}

impl StatusTone {
    pub fn class(self) -> &'static str {
        match self {
            StatusTone::Ok => "tone-ok",
            StatusTone::Muted => "tone-muted",
            StatusTone::Run => "tone-run",
            StatusTone::Warn => "tone-warn",
            StatusTone::Wait => "tone-wait",
            StatusTone::Bad => "tone-bad",
        }
    }
}

const ROUND: &str = "M11.2 6.4a3.6 3.6 0 1 0 .2 2.8M11.5 4.2v2.5h-2.5";
const QUESTION: &str = "M6 6.4a2 2 0 1 1 2.9 1.8q-.9.5-.9 1.2M8 11.6h.01";
const BACK: &str = "M11 10.5v-1.5q0-2-2-2h-4M7 4.8l-2.2 2.2l2.2 2.2";

#[derive(Clone, Copy, Debug)]
pub struct StatusMark {
    pub tone: StatusTone,
    pub word: &'static str,
    /// Stroked lines in a square of 16.
    lines: &'static str,
}

impl StatusMark {
    /// The mark of a step or an execution. An unknown status is its own word.
    pub fn of(status: &'static str) -> StatusMark {
        let (tone, word, lines) = match status {
            "planned" => (StatusTone::Muted, "planned", "M5 8h6"),
            "pending" => (StatusTone::Muted, "pending", "M8 5a3 3 0 1 0 .01 0z"),
            "running" => (StatusTone::Run, "running", "M6.5 5l5 3l-5 3z"),
            "retrying" => (StatusTone::Warn, "retrying", ROUND),
            "waiting" => (StatusTone::Wait, "waiting", QUESTION),
            "in_doubt" => (StatusTone::Wait, "in doubt", QUESTION),
            "paused" => (StatusTone::Muted, "paused", "M6.3 5v6M9.7 5v6"),
            "replanning" => (StatusTone::Warn, "replanning", ROUND),
            "completed" => (StatusTone::Ok, "completed", "M4.8 8.3l2.2 2.2l4.3-4.8"),
            "partial" => (StatusTone::Warn, "partial", "M8 4.6v4.4M5.8 6.8h4.4M5.8 11.2h4.4"),
            "failed" => (StatusTone::Bad, "failed", "M5.4 5.4l5.2 5.2M10.6 5.4l-5.2 5.2"),
            "skipped" => (StatusTone::Muted, "skipped", "M8 8h.01"),
            "cancelled" => (StatusTone::Muted, "cancelled", "M5.3 10.7l5.4-5.4"),
            "compensating" => (StatusTone::Warn, "compensating", BACK),
            "compensated" => (StatusTone::Muted, "compensated", BACK),
            "compensation_failed" => (StatusTone::Bad, "compensation failed", "M8 4.4v4.4M8 11.6h.01"),
            other => (StatusTone::Muted, other, "M5 8h6"),
        };
        StatusMark { tone, word, lines }
    }

    /// The sign as SVG in a square of 16 with this top left corner. Hidden from screen readers: the word is next to it.
    pub fn sign(&self, x: f64, y: f64) -> String {
        use super::svg_text::number;
        format!(
            "<g class=\"sign {}\" transform=\"translate({} {})\" aria-hidden=\"true\">\
             <circle cx=\"8\" cy=\"8\" r=\"8\"/><path d=\"{}\"/></g>",
            self.tone.class(),
            number(x),
            number(y),
            self.lines
        )
    }
}
