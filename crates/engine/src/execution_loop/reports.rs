//! Decides what an agent reports: several inputs, all of them or none.

use super::{ExecutionLoop, LoopError};
use crate::command_replies::CommandResult;
use crate::report::AgentReport;
use rutter_core::actor::Actor;
use rutter_core::execution::input::{DecisionTerms, ExecutionInput};
use rutter_core::execution::{Execution, decide};
use rutter_core::time::Timestamp;

impl ExecutionLoop {
    /// Tries the inputs of a report on a copy first: a refusal changes nothing. They become one append.
    pub(super) fn on_agent_report(&mut self, actor: &Actor, report: &AgentReport) -> Result<CommandResult, LoopError> {
        let now = self.look_around()?;
        let mut inputs = match report.inputs(&self.execution) {
            Ok(inputs) => inputs,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut copy = self.execution.clone();
        if let Err(refusal) = self.rehearse(&mut copy, actor, &inputs, now)? {
            return Ok(Err(refusal));
        }
        if let Some(rest) = report.rest(&self.execution, &copy) {
            if let Err(refusal) = self.rehearse(&mut copy, actor, std::slice::from_ref(&rest), now)? {
                return Ok(Err(refusal));
            }
            inputs.push(rest);
        }
        for input in inputs {
            if let Err(refusal) = self.decide_at(actor, input, now)? {
                return Ok(Err(refusal));
            }
        }
        Ok(Ok(()))
    }

    /// Decides inputs on a copy of the execution. No call starts.
    fn rehearse(
        &self,
        copy: &mut Execution,
        actor: &Actor,
        inputs: &[ExecutionInput],
        now: Timestamp,
    ) -> Result<CommandResult, LoopError> {
        for input in inputs {
            let terms = DecisionTerms { now, room: &mut 0_u32, policy: &self.shared.options.policy };
            match copy.decide_within(actor, input.clone(), terms) {
                Ok(_) => {}
                Err(decide::Error::Refused(refusal)) => return Ok(Err(refusal)),
                Err(decide::Error::Broken(illegal)) => return Err(illegal.into()),
            }
        }
        Ok(Ok(()))
    }
}
