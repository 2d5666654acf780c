//! Pictures: places that never collide, texts that never leave their place, and pictures that stay as they are.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod chart;
mod graph;
mod layout;
mod timeline;
mod xml;
