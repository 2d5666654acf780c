//! The dashboard with a real database, real tools and real HTTP.

mod answers;
mod harbour;
mod journal;
mod lists;
mod markup;
mod pages;
mod steering;
mod texts;
