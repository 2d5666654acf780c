//! A volatile write cache: what each file holds, and what of it would survive a power cut.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Cache {
    files: BTreeMap<PathBuf, Cached>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Loss {
    /// What was not synced is kept, still not synced.
    Nothing,
    /// Nothing that was not synced is kept.
    All,
    /// A part of it is kept, chosen by the seed.
    Some { seed: u64 },
}

#[derive(Debug)]
struct Cached {
    /// None until the first sync of a new file.
    durable: Option<Vec<u8>>,
    current: Vec<u8>,
    /// Sectors that the next sync will make durable.
    dirty: BTreeSet<usize>,
}

impl Cache {
    pub(super) fn opened(&mut self, file: &Path, is_new: bool, content: impl FnOnce() -> Vec<u8>) {
        if !self.files.contains_key(file) || is_new {
            let mut cached = Cached::synced(content());
            if is_new {
                cached.durable = None;
            }
            self.files.insert(file.to_path_buf(), cached);
        }
    }

    pub(super) fn wrote(&mut self, file: &Path, offset: usize, bytes: &[u8]) {
        let Some(cached) = self.files.get_mut(file) else { return };
        if bytes.is_empty() {
            return;
        }
        let end = offset + bytes.len();
        if cached.current.len() < end {
            cached.current.resize(end, 0);
        }
        cached.current[offset..end].copy_from_slice(bytes);
        cached.dirty.extend(offset / SECTOR_BYTES..=(end - 1) / SECTOR_BYTES);
    }

    pub(super) fn truncated(&mut self, file: &Path, length: usize) {
        if let Some(cached) = self.files.get_mut(file) {
            cached.current.resize(length, 0);
        }
    }

    pub(super) fn synced(&mut self, file: &Path) {
        if let Some(cached) = self.files.get_mut(file) {
            let mut durable = cached.durable.take().unwrap_or_default();
            durable.resize(cached.current.len(), 0);
            for sector in std::mem::take(&mut cached.dirty) {
                copy_sector(&cached.current, &mut durable, sector);
            }
            cached.durable = Some(durable);
        }
    }

    pub(super) fn sync_failed(&mut self, file: &Path) {
        if let Some(cached) = self.files.get_mut(file) {
            cached.dirty.clear();
        }
    }

    pub(super) fn deleted(&mut self, file: &Path) {
        self.files.remove(file);
    }

    /// Puts on the real disk what is left after a power cut.
    pub(super) fn lose(&mut self, loss: Loss) -> io::Result<()> {
        let mut chance = match loss {
            Loss::Some { seed } => Chance(seed),
            Loss::Nothing | Loss::All => Chance(0),
        };
        for (path, cached) in std::mem::take(&mut self.files) {
            // A new file in the old one's place: whoever still has the old one open cannot touch what is left.
            remove_if_there(&path)?;
            remove_if_there(&beside(&path, "-shm"))?;
            let left = match loss {
                Loss::Nothing => Some(cached),
                Loss::All => cached.durable.map(Cached::synced),
                Loss::Some { .. } => cached.torn(&mut chance).map(Cached::synced),
            };
            if let Some(left) = left {
                fs::write(&path, &left.current)?;
                self.files.insert(path, left);
            }
        }
        Ok(())
    }
}

impl Cached {
    fn synced(content: Vec<u8>) -> Cached {
        Cached { durable: Some(content.clone()), current: content, dirty: BTreeSet::new() }
    }

    fn torn(self, chance: &mut Chance) -> Option<Vec<u8>> {
        let mut torn = match self.durable {
            Some(durable) => durable,
            None if chance.flip() => Vec::new(),
            None => return None,
        };
        if chance.flip() {
            torn.resize(self.current.len(), 0);
        }
        for sector in self.dirty {
            if chance.flip() {
                copy_sector(&self.current, &mut torn, sector);
            }
        }
        Some(torn)
    }
}

/// Copies a sector that may have been cut off since it was written.
fn copy_sector(from: &[u8], to: &mut Vec<u8>, sector: usize) {
    let start = sector * SECTOR_BYTES;
    let end = from.len().min(start + SECTOR_BYTES);
    if start < end {
        if to.len() < end {
            to.resize(end, 0);
        }
        to[start..end].copy_from_slice(&from[start..end]);
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// A coin that falls the same way for the same seed (splitmix64).
struct Chance(u64);

impl Chance {
    fn flip(&mut self) -> bool {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) & 1 == 1
    }
}
