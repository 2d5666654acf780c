//! The key that signs checkpoints, and the last checkpoint it signed: two small files beside the database.
//!
//! The last checkpoint is stored outside the database, so that a rollback of the database to an older state is
//! detected, and no signature ever contradicts an earlier one.

use rutter_core::encoding::hex;
use rutter_core::hash::Hash;
use rutter_core::id::TenantId;
use rutter_core::journal::checkpoint::Checkpoint;
use rutter_core::journal::note::{SignedNote, SigningKey, VerifierKey};
use rutter_core::port::Error;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const KEY: &str = "ledger.key";
/// For operators to copy elsewhere.
const PUBLIC: &str = "ledger.pub";
const LAST: &str = "ledger.last";

/// The key files of a data directory.
#[derive(Clone, Debug)]
pub(super) struct SigningKeyFiles {
    directory: PathBuf,
    /// Two checkpoints are never signed at once.
    signing: Arc<Mutex<()>>,
}

impl SigningKeyFiles {
    pub fn new(directory: &Path) -> SigningKeyFiles {
        SigningKeyFiles { directory: directory.to_owned(), signing: Arc::default() }
    }

    pub fn lock(&self) -> MutexGuard<'_, ()> {
        self.signing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the key, or creates one in a file that no other user can read.
    pub fn signing_key(&self) -> Result<SigningKey, Error> {
        let path = self.directory.join(KEY);
        match fs::read_to_string(&path) {
            Ok(text) => parse(&text).ok_or_else(|| {
                Error::Corrupt(format!("{} is not a key: expected a name and 64 hex digits", path.display()))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.make(),
            Err(error) => Err(failed(&path, &error)),
        }
    }

    fn make(&self) -> Result<SigningKey, Error> {
        let name = format!("rutter-{}", hex(&random::<4>()?));
        let seed = random::<32>()?;
        let key = SigningKey::new(&name, seed).map_err(|error| Error::Io(error.to_string()))?;
        let path = self.directory.join(KEY);
        write_whole(&path, 0o600, &format!("{name}\n{}\n", hex(&seed)))?;
        write_whole(&self.directory.join(PUBLIC), 0o644, &format!("{}\n", key.verifier()))?;
        Ok(key)
    }

    /// The public key, if a signing key was ever created.
    pub fn verifier_key(&self) -> Result<Option<VerifierKey>, Error> {
        match self.directory.join(KEY).exists() {
            true => Ok(Some(self.signing_key()?.verifier())),
            false => Ok(None),
        }
    }

    /// Reads the public key file: a verifier need not be able to read the signing key.
    pub fn public_key(&self) -> Result<Option<VerifierKey>, Error> {
        let path = self.directory.join(PUBLIC);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&path, &error)),
        };
        let bad = |error| Error::Corrupt(format!("{} is not a public key: {error}", path.display()));
        VerifierKey::parse(text.trim_end()).map(Some).map_err(bad)
    }

    /// The newest checkpoint signed for each tenant's ledger.
    pub fn last(&self) -> Result<BTreeMap<TenantId, String>, Error> {
        let path = self.directory.join(LAST);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| Error::Corrupt(format!("{} cannot be read: {error}", path.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(failed(&path, &error)),
        }
    }

    /// Stores the newest checkpoint before it is published.
    pub fn keep_last(&self, tenant: &TenantId, note: &SignedNote) -> Result<(), Error> {
        let mut last = self.last()?;
        last.insert(tenant.clone(), note.to_string());
        let text = serde_json::to_string_pretty(&last).expect("notes are strings");
        replace(&self.directory.join(LAST), 0o644, &text)
    }

    /// Deletes the last checkpoints; allowed only when every ledger gets a new origin.
    pub fn forget_last(&self) -> Result<(), Error> {
        let path = self.directory.join(LAST);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&path, &error)),
            _ => Ok(()),
        }
    }
}

/// A unique name for a ledger.
pub(super) fn new_origin() -> Result<String, Error> {
    Ok(format!("rutter/{}", hex(&random::<16>()?)))
}

/// Reads a checkpoint that this key signed.
pub(super) fn open(note: &str, key: &VerifierKey) -> Result<Checkpoint, Error> {
    let bad = |error: &dyn std::fmt::Display| Error::Corrupt(format!("a stored checkpoint: {error}"));
    let parsed = SignedNote::parse(note).map_err(|error| bad(&error))?;
    let text = parsed.verify(std::slice::from_ref(key)).map_err(|error| bad(&error))?;
    Checkpoint::parse(text).map_err(|error| bad(&error))
}

fn parse(text: &str) -> Option<SigningKey> {
    let (name, seed) = text.trim_end().split_once('\n')?;
    SigningKey::new(name, Hash::parse(seed)?.0).ok()
}

pub(super) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::Io(format!("no random bytes: {error}")))?;
    Ok(bytes)
}

/// Writes a file atomically and syncs its directory.
fn write_whole(path: &Path, mode: u32, text: &str) -> Result<(), Error> {
    replace(path, mode, text)?;
    let synced = path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all());
    synced.map_err(|error| failed(path, &error))
}

/// Writes a file atomically: it has the old content or the new.
fn replace(path: &Path, mode: u32, text: &str) -> Result<(), Error> {
    let fresh = path.with_extension("new");
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, path)
    };
    write().map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &io::Error) -> Error {
    let text = format!("{}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::StorageFull => Error::DiskFull(text),
        _ => Error::Io(text),
    }
}
