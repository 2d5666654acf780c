//! Keys, sign-in links and sessions with a real database: who gets access, for how long, and what is stored.

mod keys;
mod sessions;
