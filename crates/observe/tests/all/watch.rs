//! Webhooks and alerts with a database on disk, an engine, tools, and receivers on real sockets.

mod alerts;
mod receiver;
mod retries;
mod rules;
mod settings;
mod stage;
mod troubles;
mod webhooks;
