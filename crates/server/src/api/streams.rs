//! Who may follow what happens: so many streams for one guest, and so many in all.

use crate::fault::Fault;
use crate::guest::Guest;
use crate::limits::STREAMS_MAX;
use crate::metrics::{Metrics, Reader};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct Streams {
    per_guest: usize,
    open: Arc<Mutex<HashMap<String, usize>>>,
    metrics: Arc<Metrics>,
}

/// One open stream; dropping it makes room for another.
#[derive(Debug)]
pub(crate) struct Place {
    guest: String,
    open: Arc<Mutex<HashMap<String, usize>>>,
    _reader: Reader,
}

impl Streams {
    pub(crate) fn new(per_guest: usize, metrics: Arc<Metrics>) -> Streams {
        Streams { per_guest, open: Arc::default(), metrics }
    }

    pub(crate) fn open(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    pub(crate) fn enter(&self, guest: &Guest) -> Result<Place, Fault> {
        let name = format!("{}/{}", guest.tenant, guest.id);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = open.values().sum();
        let own = open.get(&name).copied().unwrap_or(0);
        let full = match (own >= self.per_guest, all >= STREAMS_MAX) {
            (true, _) => format!("you follow {own} streams already, and that is how many you may"),
            (false, true) => format!("{STREAMS_MAX} streams are open, and there is room for no more"),
            (false, false) => {
                *open.entry(name.clone()).or_default() += 1;
                let _reader = self.metrics.reader();
                return Ok(Place { guest: name, open: Arc::clone(&self.open), _reader });
            }
        };
        let fault = Fault::new("server.rate_limited", full);
        Err(Fault { retryable: true, ..fault.hint("close one that is not needed any more") })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.guest) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.guest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rutter_core::id::TenantId;
    use rutter_core::time::Timestamp;

    fn guest(id: usize) -> Guest {
        let guest = Guest::local(TenantId::new("default"), "operator", Default::default());
        Guest { id: id.to_string(), ..guest }
    }

    #[test]
    fn there_is_room_for_so_many_of_one_guest_and_so_many_in_all() {
        let streams = Streams::new(2, Metrics::new("0", Timestamp(0)));
        let enter = |id: usize| streams.enter(&guest(id)).map_err(|fault| fault.message);
        let mut places: Vec<Place> = (0..STREAMS_MAX - 1).map(|nth| enter(nth / 2).unwrap()).collect();
        assert!(enter(0).unwrap_err().contains("you follow 2"));
        places.push(enter(STREAMS_MAX).unwrap());
        assert!(enter(STREAMS_MAX).unwrap_err().contains("room for no more"));
        drop(places.pop());
        places.push(enter(STREAMS_MAX).unwrap());
        drop(places);
        assert_eq!(streams.open(), 0);
    }
}
