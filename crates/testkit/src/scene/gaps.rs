//! Gaps: no process runs, or its clock jumps.

use super::ExecutionScenario;
use rutter_core::actor::Actor;
use rutter_core::execution::hold::WorkerGap;
use rutter_core::execution::input::ExecutionInput;

impl ExecutionScenario {
    /// The process is gone for a while; the next one holds what the gap caught, and recovers.
    pub fn gap(&mut self, millis: i64) {
        let since = self.now;
        self.now.0 += millis;
        let gap = WorkerGap { reason: "no worker ran".into(), since, until: self.now };
        if self.execution.is_caught_by(&gap) {
            self.give(&Actor::rutter(), ExecutionInput::Hold { reason: gap.reason, since });
        }
        self.give(&Actor::rutter(), ExecutionInput::Recovered);
    }

    /// The same in a running process, of whatever is under way.
    pub fn hold(&mut self, millis: i64) {
        let since = self.now;
        self.now.0 += millis;
        self.give(&Actor::rutter(), ExecutionInput::Hold { reason: "the clock jumped".into(), since });
    }
}
