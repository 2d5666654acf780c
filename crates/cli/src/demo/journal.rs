//! The journal of one execution as an export on disk: written entry by entry, read back, verified.

use anyhow::{Context, bail};
use rutter_core::execution::{Execution, Identity};
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::chain::Chain;
use rutter_core::journal::checkpoint::{Checkpoint, CheckpointGuard};
use rutter_core::journal::event::Record;
use rutter_core::journal::export::{CheckpointLine, EntryLine, Header, Line, PayloadLine, Scope};
use rutter_core::journal::merkle::{self, Frontier};
use rutter_core::journal::note::SigningKey;
use rutter_core::journal::payload::{Commitment, Salt, SealedPayload};
use rutter_core::journal::verify::{Trust, Verdict, verify_export};
use rutter_core::plan::Plan;
use rutter_core::time::Timestamp;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const TENANT: &str = "demo";

#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    identity: Identity,
    chain: Chain,
    frontier: Frontier,
    key: SigningKey,
}

impl Journal {
    /// Begins an export with its header.
    pub(crate) fn create(path: PathBuf, name: &str, key: &SigningKey) -> anyhow::Result<Journal> {
        let file = OpenOptions::new().append(true).create_new(true).open(&path)?;
        let identity =
            Identity { tenant: TenantId::new(TENANT), execution: ExecutionId::new(&format!("exec_{name}")) };
        let chain = Chain::new(identity.tenant.clone(), identity.execution.clone());
        let mut journal =
            Journal { path, file, identity, chain, frontier: Frontier::default(), key: key.clone() };
        let keys = vec![key.verifier().to_string()];
        let header = Header::new(Scope::Ledger, TenantId::new(TENANT), &journal.origin(), keys);
        journal.write(&[Line::Header(header)])?;
        Ok(journal)
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn entries(&self) -> u64 {
        self.chain.head().seq
    }

    /// Seals the records and appends them in one piece; they are on the disk when this returns.
    pub(crate) fn append(&mut self, records: &[Record]) -> anyhow::Result<()> {
        let mut lines = Vec::with_capacity(records.len());
        for record in records {
            let mut failed = None;
            let mut salts = || {
                let salt = random().map_err(|error| failed = Some(error));
                Salt(salt.unwrap_or_default())
            };
            let (entry, payloads) = self.chain.seal(record, &mut salts)?;
            if let Some(error) = failed {
                return Err(error);
            }
            let leaf = self.frontier.size();
            self.frontier.append(merkle::leaf(entry.hash), &mut |_, _| {});
            let payloads = payloads.iter().map(|sealed| PayloadLine::new(sealed.commitment, Some(sealed)));
            let execution = self.identity.execution.clone();
            lines.push(Line::Entry(EntryLine::new(execution, &entry, Some(leaf), payloads.collect())));
        }
        self.write(&lines)
    }

    /// Signs what was written so far.
    pub(crate) fn sign(&mut self, at: Timestamp) -> anyhow::Result<()> {
        let (size, root) = (self.frontier.size(), self.frontier.root());
        let checkpoint = Checkpoint::new(&self.origin(), size, root, at);
        let note = CheckpointGuard::new(None).sign(&self.key, checkpoint, &[])?.to_string();
        self.write(&[Line::Checkpoint(CheckpointLine { note, consistency: Vec::new() })])
    }

    /// Rebuilds the execution from what is on the disk and nothing else. The plan is found by its hash.
    pub(crate) fn replay(&self, plan: &Arc<Plan>) -> anyhow::Result<Execution> {
        Ok(self.load(plan)?.0)
    }

    /// The same for a process that is to go on writing: what was in memory is forgotten.
    pub(crate) fn recover(&mut self, plan: &Arc<Plan>) -> anyhow::Result<Execution> {
        let (execution, chain, frontier) = self.load(plan)?;
        self.file = OpenOptions::new().append(true).open(&self.path)?;
        (self.chain, self.frontier) = (chain, frontier);
        Ok(execution)
    }

    fn load(&self, plan: &Arc<Plan>) -> anyhow::Result<(Execution, Chain, Frontier)> {
        let verdict = verify(&self.path, &self.key)?;
        if !verdict.is_clean() {
            bail!("the journal is not as it was written: {verdict}");
        }
        let text = fs::read(&self.path)?;
        let mut chain = Chain::new(self.identity.tenant.clone(), self.identity.execution.clone());
        let (mut frontier, mut records) = (Frontier::default(), Vec::new());
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Line::Entry(line) = Line::parse(line).map_err(anyhow::Error::msg)? else { continue };
            let mut record = chain.follow(&line.entry())?.open(&|wanted| kept(&line, wanted))?;
            record.event.supply_plan(&|hash| (hash == plan.hash).then(|| plan.clone()));
            frontier.append(merkle::leaf(line.hash), &mut |_, _| {});
            records.push(record);
        }
        Ok((Execution::replay(self.identity.clone(), &records)?, chain, frontier))
    }

    fn origin(&self) -> String {
        format!("rutter.demo/{}", self.identity.execution)
    }

    fn write(&mut self, lines: &[Line]) -> anyhow::Result<()> {
        let mut text = String::new();
        for line in lines {
            line.write(&mut text)?;
        }
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()?;
        Ok(())
    }
}

/// Checks an export with the key its reader trusts.
pub(crate) fn verify(path: &Path, key: &SigningKey) -> anyhow::Result<Verdict> {
    let text = fs::read(path)?;
    let text = text.strip_suffix(b"\n").unwrap_or(&text);
    let trust = Trust { keys: vec![key.verifier()], ..Trust::default() };
    Ok(verify_export(text.split(|byte| *byte == b'\n'), trust))
}

/// Bytes nobody can guess, for keys, salts and names.
pub(crate) fn random<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    let read = |bytes: &mut [u8]| -> io::Result<()> { File::open("/dev/urandom")?.read_exact(bytes) };
    read(&mut bytes).context("the demo needs /dev/urandom for its key and salts")?;
    Ok(bytes)
}

fn kept(line: &EntryLine, wanted: Commitment) -> Option<SealedPayload> {
    line.payloads.iter().find_map(|payload| match payload {
        PayloadLine::Kept { salt, bytes, .. } if payload.commitment() == wanted => {
            Some(SealedPayload { commitment: wanted, salt: *salt, bytes: bytes.as_bytes().into() })
        }
        _ => None,
    })
}
