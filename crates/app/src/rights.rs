//! Who may do what: one row per operation that is not a [`Verb`], from which every surface takes its scope.
//!
//! Every operation needs the scope read besides its own, because every answer shows something of the installation. So a
//! key without it gets the same refusal over HTTP, on the dashboard and over MCP.

use crate::error::AppError;
use crate::principal::Principal;
use crate::scope::AccessScope;
use crate::verb::Verb;
use rutter_core::execution::view::PendingQuestion;

/// Something a principal does that is not a command to an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    Read,
    ListTools,
    CheckPlan,
    VerifyLedger,
    ExportLedger,
    ReadMetrics,
    ReadAlerts,
    SavePlan,
    ArchivePlan,
    StartExecution,
    Replan,
    Record,
    AcknowledgeAlert,
    SilenceAlerts,
    ChangeAlertRules,
    ReadWebhooks,
    ChangeWebhooks,
    DeletePlan,
    CallTool,
    ResetBreaker,
    SignCheckpoint,
    CleanUp,
    Erase,
    ManageKeys,
    UseAdminTools,
}

/// An operation and its properties.
#[derive(Clone, Copy, Debug)]
pub struct OperationRow {
    pub operation: Operation,
    pub name: &'static str,
    /// The scope it needs besides read.
    pub scope: AccessScope,
    /// A description for people.
    pub meaning: &'static str,
    /// Whether it is part of MCP's admin toolset, which clients of the socket have if the operator chose it for them.
    pub in_admin_toolset: bool,
}

const fn row(operation: Operation, name: &'static str, scope: AccessScope, meaning: &'static str) -> OperationRow {
    OperationRow { operation, name, scope, meaning, in_admin_toolset: false }
}

impl OperationRow {
    const fn in_admin_toolset(self) -> OperationRow {
        OperationRow { in_admin_toolset: true, ..self }
    }
}

/// The one table, by scope, in the order of the variants.
pub const OPERATIONS: &[OperationRow] = &[
    row(Operation::Read, "read", AccessScope::Read, "Read plans, executions, journals, questions and statistics"),
    row(Operation::ListTools, "list_tools", AccessScope::Read, "List tools and servers, which starts idle servers"),
    row(Operation::CheckPlan, "check_plan", AccessScope::Read, "Check a plan, draft one, preview it; saves nothing"),
    row(Operation::VerifyLedger, "verify_ledger", AccessScope::Read, "Verify the ledger from beginning to end"),
    row(Operation::ExportLedger, "export_ledger", AccessScope::Read, "Export the ledger, or some executions"),
    row(Operation::ReadMetrics, "read_metrics", AccessScope::Read, "Read the metrics"),
    row(Operation::ReadAlerts, "read_alerts", AccessScope::Read, "Read alerts, alert rules and silences"),
    row(Operation::SavePlan, "save_plan", AccessScope::Operate, "Save a plan or a revision, also under another name"),
    row(Operation::ArchivePlan, "archive_plan", AccessScope::Operate, "Archive, restore or rename a plan"),
    row(Operation::StartExecution, "start_execution", AccessScope::Operate, "Execute a saved plan"),
    row(Operation::Replan, "replan", AccessScope::Operate, "Give an unfinished execution another plan"),
    row(Operation::Record, "record", AccessScope::Operate, "Record what an agent did itself"),
    row(Operation::AcknowledgeAlert, "acknowledge_alert", AccessScope::Operate, "Acknowledge an alert"),
    row(Operation::SilenceAlerts, "silence_alerts", AccessScope::Operate, "Create and end silences"),
    row(Operation::ChangeAlertRules, "change_alert_rules", AccessScope::Admin, "Create, change and remove alert rules"),
    row(Operation::ReadWebhooks, "read_webhooks", AccessScope::Admin, "Read webhooks and what was delivered to them"),
    row(Operation::ChangeWebhooks, "change_webhooks", AccessScope::Admin, "Change and test webhooks, deliver again"),
    row(Operation::DeletePlan, "delete_plan", AccessScope::Admin, "Delete a plan and its text"),
    row(Operation::CallTool, "call_tool", AccessScope::Admin, "Try a tool out, journaled as a plan of one step")
        .in_admin_toolset(),
    row(Operation::ResetBreaker, "reset_breaker", AccessScope::Admin, "Close the circuit breaker of a server"),
    row(Operation::SignCheckpoint, "sign_checkpoint", AccessScope::Admin, "Sign a checkpoint of the ledger"),
    row(Operation::CleanUp, "clean_up", AccessScope::Admin, "Remove old executions or payloads").in_admin_toolset(),
    row(Operation::Erase, "erase", AccessScope::Admin, "Erase payloads of an execution"),
    row(Operation::ManageKeys, "manage_keys", AccessScope::Admin, "Create, list and revoke keys"),
    row(Operation::UseAdminTools, "use_admin_tools", AccessScope::Admin, "Use the toolset admin of MCP")
        .in_admin_toolset(),
];

impl Operation {
    pub fn row(self) -> &'static OperationRow {
        &OPERATIONS[self as usize]
    }

    pub fn scope(self) -> AccessScope {
        self.row().scope
    }
}

/// Returns an error that names the missing scope unless the principal may do this. Whoever acts on the answer asks
/// [`App::require`](crate::app::App::require), which records a refusal.
pub fn check(principal: &Principal, operation: Operation) -> Result<(), AppError> {
    check_scope(principal, AccessScope::Read)?;
    if operation.row().in_admin_toolset && principal.may_administer() {
        return Ok(());
    }
    check_scope(principal, operation.scope())
}

/// The same for a command to an execution.
pub fn check_verb(principal: &Principal, verb: Verb) -> Result<(), AppError> {
    check_scope(principal, AccessScope::Read)?;
    check_scope(principal, verb.row().scope)
}

/// Whether the principal may do this: for surfaces that leave out what would be refused.
pub fn may(principal: &Principal, operation: Operation) -> bool {
    check(principal, operation).is_ok()
}

/// The same for a command to an execution.
pub fn may_send(principal: &Principal, verb: Verb) -> bool {
    check_verb(principal, verb).is_ok()
}

/// The scope that answering a question needs: the execution takes some answers from people only.
pub fn scope_to_answer(question: &PendingQuestion) -> AccessScope {
    match question {
        PendingQuestion::Approval { .. }
        | PendingQuestion::Doubt { .. }
        | PendingQuestion::Replan { .. }
        | PendingQuestion::SecondEffect { .. }
        | PendingQuestion::Drift { .. }
        | PendingQuestion::Hold { .. } => AccessScope::Approve,
        PendingQuestion::Tool { person_only: true, .. } => AccessScope::Approve,
        PendingQuestion::Tool { .. }
        | PendingQuestion::Failure { .. }
        | PendingQuestion::Compensation { .. }
        | PendingQuestion::Limit { .. }
        | PendingQuestion::Silence { .. } => AccessScope::Operate,
    }
}

/// Returns an error that names the scope if the principal lacks it.
pub(crate) fn check_scope(principal: &Principal, scope: AccessScope) -> Result<(), AppError> {
    if principal.may(scope) {
        return Ok(());
    }
    // A client program cannot get this scope by another key: its user has to answer.
    if scope == AccessScope::Approve && principal.client.is_some() {
        return Err(AppError::new("server.not_allowed", "only a person may do this, not a program")
            .hint("tell the user what is waiting; people answer on the dashboard or in their own terminal"));
    }
    let message = format!("this needs the scope {scope}, which {} does not have", principal.name);
    Err(AppError::new("server.not_allowed", message).hint("ask the operator for a key that has this scope"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::Credential;
    use crate::scope::AccessScopes;
    use rutter_core::id::TenantId;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    const BEGIN: &str = "<!-- generated by UPDATE_GOLDENS=1 cargo test -p rutter-app rights -->\n";
    const END: &str = "<!-- end -->\n";

    fn principal(scopes: &[AccessScope]) -> Principal {
        let credential = Credential::Token { name: "tester".to_owned() };
        Principal::new(TenantId::new("default"), "tester", scopes.iter().copied().collect(), credential)
    }

    #[test]
    fn every_operation_has_the_row_at_its_place() {
        for (at, row) in OPERATIONS.iter().enumerate() {
            assert_eq!(row.operation as usize, at, "{}", row.name);
        }
        assert_eq!(Operation::UseAdminTools as usize, OPERATIONS.len() - 1, "the last variant has the last row");
        let names: BTreeSet<&str> = OPERATIONS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), OPERATIONS.len());
    }

    #[test]
    fn an_operation_needs_read_and_its_scope() {
        for row in OPERATIONS {
            assert!(may(&principal(&[AccessScope::Read, row.scope]), row.operation), "{}", row.name);
            for scope in AccessScope::ALL {
                let is_enough = scope == AccessScope::Read && row.scope == AccessScope::Read;
                assert_eq!(may(&principal(&[scope]), row.operation), is_enough, "{} {scope}", row.name);
            }
        }
    }

    #[test]
    fn the_socket_has_the_admin_toolset_and_no_other_right_of_an_administrator() {
        let local = Principal::local(TenantId::new("default"), "operator", BTreeSet::new());
        for row in OPERATIONS {
            let expected = row.scope != AccessScope::Admin || row.in_admin_toolset;
            assert_eq!(may(&local, row.operation), expected, "{}", row.name);
        }
        assert!(check_verb(&local, Verb::Approve).is_err());
        let nobody = Principal { scopes: AccessScopes::new(), ..local };
        assert!(!OPERATIONS.iter().any(|row| may(&nobody, row.operation)));
    }

    #[test]
    fn the_page_of_scopes_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
        let page = fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        let mut table = "| operation | scope | what it is |\n|---|---|---|\n".to_owned();
        for OperationRow { name, scope, meaning, .. } in OPERATIONS {
            table += &format!("| `{name}` | `{scope}` | {meaning} |\n");
        }
        let now = format!("{before}{BEGIN}{table}{END}{after}");
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            fs::write(&path, &now).unwrap();
        }
        assert!(page == now, "docs/security.md is out of date; UPDATE_GOLDENS=1 regenerates it");
    }
}
