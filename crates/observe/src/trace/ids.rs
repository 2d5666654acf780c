//! Trace and span ids, derived from the ledger: the same execution has the same trace id, whichever process sends it.

use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, TenantId};

/// 32 hex digits.
pub fn trace(tenant: &TenantId, execution: &ExecutionId) -> String {
    let hash = Hash::of_fields("rutter/trace/v1", &[tenant.as_str().as_bytes(), execution.as_str().as_bytes()]);
    hash.to_string()[..32].to_owned()
}

/// 16 hex digits: the span of a whole execution.
pub fn root(tenant: &TenantId, execution: &ExecutionId) -> String {
    span(tenant, execution, 0)
}

/// 16 hex digits: the span that starts with this entry.
pub fn span(tenant: &TenantId, execution: &ExecutionId, seq: u64) -> String {
    let fields: [&[u8]; 3] = [tenant.as_str().as_bytes(), execution.as_str().as_bytes(), &seq.to_be_bytes()];
    Hash::of_fields("rutter/span/v1", &fields).to_string()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_of_the_execution_alone() {
        let (tenant, execution) = (TenantId::new("default"), ExecutionId::new("exec_1"));
        let other = ExecutionId::new("exec_2");
        assert_eq!(trace(&tenant, &execution), trace(&tenant, &execution));
        assert_ne!(trace(&tenant, &execution), trace(&tenant, &other));
        assert_ne!(trace(&tenant, &execution), trace(&TenantId::new("other"), &execution));
        assert_ne!(span(&tenant, &execution, 1), span(&tenant, &execution, 2));
        assert_eq!((trace(&tenant, &execution).len(), root(&tenant, &execution).len()), (32, 16));
    }
}
