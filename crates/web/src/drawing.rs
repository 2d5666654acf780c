//! Drawings of plans, executions and charts: pure functions from data to SVG.
//!
//! [`layout`] computes positions of the steps of a plan, [`graph`] draws them, [`timeline`] draws what happened when,
//! and [`chart`] draws numbers. A drawing uses classes and no inline styles, so it fits a strict content security
//! policy and the page decides about light and dark ([`STYLE`]). Status is shown by colour, sign and word, never by
//! colour alone, and every drawing has a text description.

pub mod chart;
pub mod graph;
pub mod layout;
pub mod status;
mod svg_text;
pub mod timeline;

/// The styles for every class the drawings use. The page defines the colours: `--ok`, `--bad`, `--warn`, `--wait`,
/// `--run`, `--muted`, `--line`, `--text` and `--panel`.
pub const STYLE: &str = include_str!("drawing/drawing.css");
