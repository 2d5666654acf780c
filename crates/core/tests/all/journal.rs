//! The journal through its public interface: its bytes, its exports, and the detection of tampering.

mod describe;
mod golden;
pub mod ledger;
pub mod samples;
mod tamper;
