//! Journals, plans and ledgers on disk.
