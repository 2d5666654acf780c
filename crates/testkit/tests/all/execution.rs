//! Table tests of executions: one file per theme, in one binary to link once.

mod agent;
mod answers;
mod approvals;
mod compensation;
mod conditions;
mod context;
mod control;
mod doubts;
mod fallback;
mod fan_out;
mod forward;
mod found;
mod inquiries;
mod limits;
mod policies;
mod random;
mod refusals;
mod replan;
mod replay;
mod retries;
mod tickets;
mod transitions;
mod view;
