//! Pictures of plans and executions: pure functions from facts to SVG.
//!
//! [`layout`] finds places for the steps of a plan, [`graph`] draws them, [`timeline`] draws what happened when, and
//! [`chart`] draws numbers. A picture carries classes and no styles, so that a strict policy for content holds and the
//! page decides about light and dark ([`STYLE`]). Status is told by colour, sign and word, never by colour alone, and
//! every picture says in words what it shows.

pub mod chart;
pub mod graph;
pub mod layout;
mod pen;
pub mod status;
pub mod timeline;

/// The styles for every class the pictures use. The page gives the colours: `--ok`, `--bad`, `--warn`, `--wait`,
/// `--run`, `--muted`, `--line`, `--text` and `--panel`.
pub const STYLE: &str = include_str!("drawing/drawing.css");
