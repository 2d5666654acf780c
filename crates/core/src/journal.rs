//! What happened, in order, sealed so that nobody can change it quietly.
//!
//! An [`event`] carries [`payload`]s, which are stored apart: the entry holds only commitments to them. The
//! [`codec`] turns a record into the bytes that are stored and hashed, the [`chain`] links the entries of one
//! execution, the [`merkle`] tree covers all entries of a tenant, and a [`checkpoint`] is the signed head of
//! that tree, written as a [`note`]. An [`export`] carries all of it to somebody else, who can [`verify`] it.

pub mod chain;
pub mod checkpoint;
pub mod codec;
pub mod event;
pub mod export;
pub mod label;
pub mod merkle;
pub mod note;
pub mod payload;
pub mod verify;
