//! Limits on open event streams, per principal and in total.

use rutter_app::error::AppError;
use rutter_app::limits::STREAMS_MAX;
use rutter_app::principal::Principal;
use rutter_observe::metrics::{ServerMetrics, StreamReaderGuard};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct StreamLimiter {
    per_principal: usize,
    open: Arc<Mutex<HashMap<String, usize>>>,
    metrics: Arc<ServerMetrics>,
}

/// A slot for one open stream, freed when dropped.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    principal: String,
    open: Arc<Mutex<HashMap<String, usize>>>,
    _reader: StreamReaderGuard,
}

impl StreamLimiter {
    pub(crate) fn new(per_principal: usize, metrics: Arc<ServerMetrics>) -> StreamLimiter {
        StreamLimiter { per_principal, open: Arc::default(), metrics }
    }

    pub(crate) fn open(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    pub(crate) fn enter(&self, caller: &Principal) -> Result<StreamSlot, AppError> {
        let name = format!("{}/{}", caller.tenant, caller.id());
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = open.values().sum();
        let own = open.get(&name).copied().unwrap_or(0);
        let full = match (own >= self.per_principal, all >= STREAMS_MAX) {
            (true, _) => format!("you have {own} open streams, the maximum"),
            (false, true) => format!("{STREAMS_MAX} streams are open, the maximum of this server"),
            (false, false) => {
                *open.entry(name.clone()).or_default() += 1;
                let _reader = self.metrics.reader();
                return Ok(StreamSlot { principal: name, open: Arc::clone(&self.open), _reader });
            }
        };
        let error = AppError::new("server.rate_limited", full);
        Err(AppError { retryable: true, ..error.hint("close one that is no longer needed") })
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.principal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rutter_app::principal::Credential;
    use rutter_core::id::TenantId;
    use rutter_core::time::Timestamp;

    fn principal(id: usize) -> Principal {
        let principal = Principal::local(TenantId::new("default"), "operator", Default::default());
        Principal { credential: Credential::Token { name: id.to_string() }, ..principal }
    }

    #[test]
    fn streams_are_limited_per_principal_and_in_total() {
        let streams = StreamLimiter::new(2, ServerMetrics::new("0", Timestamp(0)));
        let enter = |id: usize| streams.enter(&principal(id)).map_err(|error| error.message);
        let mut places: Vec<StreamSlot> = (0..STREAMS_MAX - 1).map(|nth| enter(nth / 2).unwrap()).collect();
        assert!(enter(0).unwrap_err().contains("you have 2"));
        places.push(enter(STREAMS_MAX).unwrap());
        assert!(enter(STREAMS_MAX).unwrap_err().contains("maximum of this server"));
        drop(places.pop());
        places.push(enter(STREAMS_MAX).unwrap());
        drop(places);
        assert_eq!(streams.open(), 0);
    }
}
