//! How a status looks: a tone, a sign and a word, so that none of the three has to be seen to know it.

/// What a status means for whoever looks, and which colour it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tone {
    Ok,
    Muted,
    Run,
    Warn,
    Wait,
    Bad,
}

impl Tone {
    pub fn class(self) -> &'static str {
        match self {
            Tone::Ok => "tone-ok",
            Tone::Muted => "tone-muted",
            Tone::Run => "tone-run",
            Tone::Warn => "tone-warn",
            Tone::Wait => "tone-wait",
            Tone::Bad => "tone-bad",
        }
    }
}

const ROUND: &str = "M11.2 6.4a3.6 3.6 0 1 0 .2 2.8M11.5 4.2v2.5h-2.5";
const QUESTION: &str = "M6 6.4a2 2 0 1 1 2.9 1.8q-.9.5-.9 1.2M8 11.6h.01";
const BACK: &str = "M11 10.5v-1.5q0-2-2-2h-4M7 4.8l-2.2 2.2l2.2 2.2";

#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub tone: Tone,
    pub word: &'static str,
    /// Lines in a square of 16, to be stroked.
    lines: &'static str,
}

impl Mark {
    /// Of a step or an execution. A word nobody has a sign for stands for itself.
    pub fn of(status: &'static str) -> Mark {
        let (tone, word, lines) = match status {
            "planned" => (Tone::Muted, "planned", "M5 8h6"),
            "pending" => (Tone::Muted, "pending", "M8 5a3 3 0 1 0 .01 0z"),
            "running" => (Tone::Run, "running", "M6.5 5l5 3l-5 3z"),
            "retrying" => (Tone::Warn, "retrying", ROUND),
            "waiting" => (Tone::Wait, "waiting", QUESTION),
            "in_doubt" => (Tone::Wait, "in doubt", QUESTION),
            "paused" => (Tone::Muted, "paused", "M6.3 5v6M9.7 5v6"),
            "replanning" => (Tone::Warn, "replanning", ROUND),
            "completed" => (Tone::Ok, "completed", "M4.8 8.3l2.2 2.2l4.3-4.8"),
            "partial" => (Tone::Warn, "partial", "M8 4.6v4.4M5.8 6.8h4.4M5.8 11.2h4.4"),
            "failed" => (Tone::Bad, "failed", "M5.4 5.4l5.2 5.2M10.6 5.4l-5.2 5.2"),
            "skipped" => (Tone::Muted, "skipped", "M8 8h.01"),
            "cancelled" => (Tone::Muted, "cancelled", "M5.3 10.7l5.4-5.4"),
            "compensating" => (Tone::Warn, "compensating", BACK),
            "compensated" => (Tone::Muted, "compensated", BACK),
            "compensation_failed" => (Tone::Bad, "compensation failed", "M8 4.4v4.4M8 11.6h.01"),
            other => (Tone::Muted, other, "M5 8h6"),
        };
        Mark { tone, word, lines }
    }

    /// The sign as SVG in a square of 16 with this upper left corner. It says nothing by itself: the word is beside it.
    pub fn sign(&self, x: f64, y: f64) -> String {
        use super::pen::number;
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
