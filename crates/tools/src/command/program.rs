//! The files of a command, pinned by the hash of their bytes: a replaced program is not the accepted one.

use rutter_core::hash::Hash;
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The program itself comes first.
#[derive(Clone, Debug)]
pub(crate) struct ProgramFiles {
    paths: Arc<Vec<PathBuf>>,
    /// As they were when they were last listed.
    known: Arc<Mutex<BTreeMap<PathBuf, KnownFile>>>,
}

#[derive(Clone, Debug, PartialEq)]
struct KnownFile {
    hash: Hash,
    trace: FileFingerprint,
}

/// Changes with every ordinary change of a file, so that its bytes need not be read each time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FileFingerprint {
    place: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl ProgramFiles {
    pub fn new(paths: Vec<PathBuf>) -> ProgramFiles {
        ProgramFiles { paths: Arc::new(paths), known: Arc::default() }
    }

    /// Reads the hashes of the files as they are now, and pins them.
    pub async fn read(&self) -> Result<BTreeMap<String, String>, String> {
        let files = self.clone();
        let read = move || {
            let now = files.look()?;
            let hashes = now.iter().map(|(path, known)| (path.display().to_string(), known.hash.to_string())).collect();
            *files.known.lock().unwrap_or_else(PoisonError::into_inner) = now;
            Ok(hashes)
        };
        on_a_thread(read).await
    }

    /// Whether the files differ from those that were listed last.
    pub async fn changed(&self) -> Result<bool, String> {
        let files = self.clone();
        let compare = move || {
            let now = files.look()?;
            let mut known = files.known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.is_empty() {
                *known = now;
                return Ok(false);
            }
            let hashes =
                |files: &BTreeMap<PathBuf, KnownFile>| files.values().map(|known| known.hash).collect::<Vec<_>>();
            Ok(hashes(&known) != hashes(&now))
        };
        on_a_thread(compare).await
    }

    /// The first missing file, if there is one.
    pub fn missing(&self) -> Option<String> {
        let missing = self.paths.iter().find(|path| !path.is_file())?;
        Some(format!("{} is not there", missing.display()))
    }

    fn look(&self) -> Result<BTreeMap<PathBuf, KnownFile>, String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let look = |path: &PathBuf| {
            let now = fs::metadata(path).and_then(|metadata| {
                let trace = FileFingerprint::of(&metadata);
                match known.get(path) {
                    Some(known) if known.trace == trace => Ok(known.clone()),
                    _ => Ok(KnownFile { hash: hash(path)?, trace }),
                }
            });
            now.map(|known| (path.clone(), known)).map_err(|error| format!("{}: {error}", path.display()))
        };
        self.paths.iter().map(look).collect()
    }
}

impl FileFingerprint {
    fn of(metadata: &Metadata) -> FileFingerprint {
        FileFingerprint {
            place: (metadata.dev(), metadata.ino()),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

fn hash(path: &Path) -> std::io::Result<Hash> {
    Ok(Hash::of(&[&fs::read(path)?]))
}

async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(error.to_string()))
}
