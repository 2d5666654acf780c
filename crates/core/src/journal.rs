//! The journal: events in order, sealed so that any change is detected.
//!
//! An [`event`] has [`payload`]s, which are stored separately: the entry holds only commitments to them. The [`codec`]
//! turns a record into the bytes that are stored and hashed, the [`chain`] links the entries of one execution, the
//! [`merkle`] tree covers all entries of a tenant, and a [`checkpoint`] is the signed head of that tree, written as a
//! [`note`]. An [`export`] contains all of it; [`verify`] checks an export offline.

pub mod attempts;
pub mod chain;
pub mod checkpoint;
pub mod codec;
pub mod describe;
pub mod event;
pub mod export;
mod fields;
pub mod label;
pub mod merkle;
pub mod note;
pub mod payload;
pub mod verify;
