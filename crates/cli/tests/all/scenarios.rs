//! What a buyer would try, with the real program and tools that have real effects. The tools' log is checked first, the
//! program's output second.

mod answer;
mod bulk;
pub mod fixture;
mod incident;
mod lost_answer;
mod migration;
mod off_boarding;
mod order;
mod release;
mod settings;
mod steering;
mod trip;
mod wheel;
