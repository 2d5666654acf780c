//! Children: what they can reach, and that none of them outlives us.
#![cfg(target_os = "linux")]

mod fixture;
mod reach;
mod survivors;
