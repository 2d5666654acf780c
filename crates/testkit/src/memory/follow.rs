//! Following a ledger as it grows.

use super::find::page_size;
use super::state::{Ledger, Outcome, State};
use super::{Memory, answer};
use rutter_core::id::TenantId;
use rutter_core::journal::codec;
use rutter_core::port::feed::{Feed, Placed, Stretch};
use rutter_core::port::{Answer, Error};

impl Feed for Memory {
    fn after(&self, tenant: &TenantId, place: u64, limit: u32) -> Answer<'_, Stretch> {
        answer(self.state().after(tenant, place, limit))
    }

    fn beyond(&self, tenant: &TenantId, place: u64) -> Answer<'_, u64> {
        let (tenant, mut grown) = (tenant.clone(), self.grown.subscribe());
        Box::pin(async move {
            loop {
                grown.mark_unchanged();
                let size = self.state().size(&tenant);
                if size > place {
                    return Ok(size);
                }
                grown.changed().await.map_err(|_| Error::Closed)?;
            }
        })
    }

    fn size(&self, tenant: &TenantId) -> Answer<'_, u64> {
        answer(Ok(self.state().size(tenant)))
    }
}

impl State {
    fn size(&self, tenant: &TenantId) -> u64 {
        self.tenants.get(tenant).map_or(0, |ledger| ledger.places)
    }

    fn after(&self, tenant: &TenantId, place: u64, limit: u32) -> Outcome<Stretch> {
        let limit = page_size(limit)?;
        let lines = self.tenants.get(tenant).into_iter().flat_map(Ledger::lines);
        let mut lines: Vec<_> = lines.map(|(_, line)| line).filter(|line| line.place > place).collect();
        lines.sort_by_key(|line| line.place);
        lines.truncate(limit);
        let until = match lines.last() {
            Some(last) if lines.len() == limit => last.place,
            _ => self.size(tenant).max(place),
        };
        let items = lines.into_iter().map(|line| {
            let entry = &line.sealed.entry;
            let stored = codec::decode(&entry.bytes).map_err(|error| Error::Corrupt(error.to_string()))?;
            Ok(Placed { place: line.place, hash: entry.hash, stored })
        });
        Ok(Stretch { items: items.collect::<Outcome<_>>()?, until })
    }
}
