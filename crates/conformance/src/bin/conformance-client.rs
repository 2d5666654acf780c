//! A server for the suite.
fn main() {}
