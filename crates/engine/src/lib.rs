//! Carries executions out.
