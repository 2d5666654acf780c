//! Reading drafts, by tables.
