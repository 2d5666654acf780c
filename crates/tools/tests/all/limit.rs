//! Limits on calls: how many at once, at which rate, and who is next.

mod crowd;
mod grants;
mod places;
mod random;
mod rates;
mod turns;
