//! Disks that fail and processes that die: how the store is tortured. Tests only.
