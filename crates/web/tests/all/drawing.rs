//! Drawings: layouts without collisions, escaped texts, and snapshots.

mod chart;
mod graph;
mod layout;
mod timeline;
mod xml;
