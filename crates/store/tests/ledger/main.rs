//! The ledger: what is signed, what is found when somebody changes it, and what a copy of it is worth.

mod backup;
mod fixture;
mod signing;
mod tamper;
