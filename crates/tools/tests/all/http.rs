//! HTTP tools against real sockets: what the server saw, what it did, and the outcome we report.

mod answers;
mod canaries;
mod configuration;
mod fixture;
mod outcomes;
mod redirects;
mod registry;
mod slots;
