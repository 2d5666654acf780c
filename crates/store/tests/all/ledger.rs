//! The ledger: signing, detection of tampering, proofs, backup and restore.

mod backup;
pub mod fixture;
mod following;
mod proving;
mod released;
mod signing;
mod tamper;
