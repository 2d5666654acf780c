//! A volatile write cache: the content of each file, and what of it would survive a power cut.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What a disk writes atomically.
const SECTOR_BYTES: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct WriteCache {
    files: BTreeMap<PathBuf, CachedFile>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum CacheLoss {
    /// Unsynced data stays, still unsynced.
    Nothing,
    /// All unsynced data is lost.
    All,
    /// A part of it is lost, chosen by the seed.
    Some { seed: u64 },
}

#[derive(Debug)]
struct CachedFile {
    /// None until the first sync of a new file.
    durable: Option<Vec<u8>>,
    current: Vec<u8>,
    /// Sectors that the next sync will make durable.
    dirty: BTreeSet<usize>,
    /// Sectors whose sync failed: no later sync will make them durable, unless they are written again.
    forgotten: BTreeSet<usize>,
}

impl WriteCache {
    pub(crate) fn opened(&mut self, file: &Path, is_new: bool, content: impl FnOnce() -> Vec<u8>) {
        if !self.files.contains_key(file) || is_new {
            let mut cached = CachedFile::synced(content());
            if is_new {
                cached.durable = None;
            }
            self.files.insert(file.to_path_buf(), cached);
        }
    }

    pub(crate) fn wrote(&mut self, file: &Path, offset: usize, bytes: &[u8]) {
        let Some(cached) = self.files.get_mut(file) else { return };
        let end = offset + bytes.len();
        if cached.current.len() < end {
            cached.current.resize(end, 0);
        }
        cached.current[offset..end].copy_from_slice(bytes);
        cached.touch(offset, end);
    }

    pub(crate) fn truncated(&mut self, file: &Path, length: usize) {
        if let Some(cached) = self.files.get_mut(file) {
            let end = cached.current.len();
            cached.current.resize(length, 0);
            cached.touch(length, end);
        }
    }

    pub(crate) fn synced(&mut self, file: &Path) {
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
            cached.forgotten.append(&mut cached.dirty);
        }
    }

    pub(crate) fn deleted(&mut self, file: &Path) {
        self.files.remove(file);
    }

    /// Writes to the real disk what remains after a power cut or a kill.
    pub(super) fn lose(&mut self, loss: CacheLoss) -> io::Result<()> {
        let mut chance = match loss {
            CacheLoss::Some { seed } => SeededCoin(seed),
            CacheLoss::Nothing | CacheLoss::All => SeededCoin(0),
        };
        for (path, cached) in std::mem::take(&mut self.files) {
            // A new file in place of the old one: a process that still has the old one open cannot change what
            // remains, and SQLite does not clean up when it closes a database that has moved.
            remove_if_there(&path)?;
            remove_if_there(&beside(&path, "-shm"))?;
            let left = match loss {
                CacheLoss::Nothing => Some(cached),
                CacheLoss::All => cached.durable.map(CachedFile::synced),
                CacheLoss::Some { .. } => cached.torn(&mut chance).map(CachedFile::synced),
            };
            if let Some(left) = left {
                fs::write(&path, &left.current)?;
                self.files.insert(path, left);
            }
        }
        Ok(())
    }
}

impl CachedFile {
    fn synced(content: Vec<u8>) -> CachedFile {
        let durable = Some(content.clone());
        CachedFile { durable, current: content, dirty: BTreeSet::new(), forgotten: BTreeSet::new() }
    }

    fn touch(&mut self, offset: usize, end: usize) {
        for sector in offset / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES) {
            self.dirty.insert(sector);
            self.forgotten.remove(&sector);
        }
    }

    fn torn(self, chance: &mut SeededCoin) -> Option<Vec<u8>> {
        let mut torn = match self.durable {
            Some(durable) => durable,
            None if chance.flip() => Vec::new(),
            None => return None,
        };
        if chance.flip() {
            torn.resize(self.current.len(), 0);
        }
        for sector in self.dirty.union(&self.forgotten) {
            if chance.flip() {
                copy_sector(&self.current, &mut torn, *sector);
            }
        }
        Some(torn)
    }
}

/// Copies a sector that may have been truncated since it was written.
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

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// A coin that gives the same results for the same seed (splitmix64).
struct SeededCoin(u64);

impl SeededCoin {
    fn flip(&mut self) -> bool {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTORS: usize = 64;

    #[test]
    fn a_torn_file_is_a_mixture_that_its_seed_decides() {
        let torn = |seed| written_over().torn(&mut SeededCoin(seed)).unwrap();
        assert_eq!(torn(1), torn(1));
        assert_ne!(torn(1), torn(2));
        for content in [torn(1), torn(2)] {
            let stored = content.chunks(SECTOR_BYTES).filter(|sector| sector.iter().all(|byte| *byte == b'b')).count();
            let old = content.chunks(SECTOR_BYTES).filter(|sector| sector.iter().all(|byte| *byte == b'a')).count();
            assert!(stored > 0 && old > 0 && stored + old == SECTORS, "{stored} new and {old} old sectors");
        }
    }

    #[test]
    fn a_failed_sync_forgets_the_data_it_should_have_saved() {
        let (mut cache, file) = (WriteCache::default(), Path::new("db"));
        cache.opened(file, false, || vec![b'a'; SECTOR_BYTES * 2]);
        cache.wrote(file, 0, b"bb");
        cache.sync_failed(file);
        cache.wrote(file, SECTOR_BYTES, b"cc");
        cache.synced(file);
        let durable = cache.files[file].durable.as_ref().unwrap();
        assert_eq!([durable[0], durable[SECTOR_BYTES]], [b'a', b'c']);
        cache.wrote(file, 0, b"dd");
        cache.synced(file);
        assert_eq!(cache.files[file].durable.as_ref().unwrap()[..3], *b"dda");
    }

    #[test]
    fn truncated_data_does_not_come_back() {
        let (mut cache, file) = (WriteCache::default(), Path::new("db"));
        cache.opened(file, false, || vec![b'a'; SECTOR_BYTES * 3]);
        cache.truncated(file, 10);
        cache.wrote(file, SECTOR_BYTES * 3, b"b");
        cache.synced(file);
        let cached = &cache.files[file];
        assert_eq!(cached.durable.as_ref(), Some(&cached.current));
        assert_eq!(cached.current.iter().filter(|byte| **byte == b'a').count(), 10);
    }

    /// A file of a, completely overwritten with b, and not synced.
    fn written_over() -> CachedFile {
        let mut cached = CachedFile::synced(vec![b'a'; SECTOR_BYTES * SECTORS]);
        cached.current.fill(b'b');
        cached.touch(0, SECTOR_BYTES * SECTORS);
        cached
    }
}
