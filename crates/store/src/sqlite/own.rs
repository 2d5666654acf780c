//! The ledger's own journal: what happened to the ledger as a whole. One per tenant.

use super::entries;
use super::fault;
use super::session::{WriteSession, hash_of};
use rusqlite::params;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::chain::{ChainHead, HashChain};
use rutter_core::journal::event::EventRecord;
use rutter_core::journal::payload::PayloadSalt;
use rutter_core::port::Error;
use rutter_core::port::journal::SealedEntry;

/// The execution id in the entries of this journal.
pub const JOURNAL: &str = "ledger";

const HEAD: &str = "select seq, head from tenant where number = ?1";
const MOVE_ON: &str = "update tenant set seq = ?2, head = ?3 where number = ?1";

/// Adds a record in the open transaction. Such records carry no payload.
pub(super) fn record(
    session: &mut WriteSession,
    tenant: i64,
    name: &TenantId,
    record: &EventRecord,
) -> Result<(), Error> {
    let (seq, hash): (u64, Vec<u8>) =
        session.connection.query_row(HEAD, [tenant], |row| Ok((row.get(0)?, row.get(1)?))).map_err(fault::of)?;
    let head = ChainHead { seq, hash: hash_of(&hash)? };
    let mut chain = HashChain::resume(name.clone(), ExecutionId::new(JOURNAL), head);
    let mut no_salt = || PayloadSalt([0; 16]);
    let sealed = SealedEntry::seal(&mut chain, record, &mut no_salt)
        .map_err(|_| Error::Invalid("a ledger's own journal has no payloads".to_owned()))?;
    let packed = entries::pack(head, vec![sealed])?;
    entries::write(session, tenant, -tenant, &packed)?;
    let head = chain.head();
    session.execute(MOVE_ON, params![tenant, head.seq, head.hash.0])?;
    Ok(())
}
