//! What only administrators may, and calls beside all plans: over MCP, over HTTP and at the command line.

use super::Sequence;
use rutter_testkit::adversary::plans::guarded_call;
use rutter_testkit::adversary::{INVOICE, LOOK};
use serde_json::{Value, json};

impl Sequence<'_> {
    /// What only administrators may, and what leads around plans.
    pub(super) fn administer(&mut self, at: usize) {
        match self.random.below(8) {
            0 => drop(self.call_at("cleanup_history", &json!({ "older_than_days": 0, "reason": "because" }), at)),
            1 => {
                let order = self.executions[at].order.clone();
                let (tool, _) = self.unplanned_call(&order);
                let context = json!({ "order": order, "amount": 5 });
                let arguments = json!({ "request": "charge it", "selected_tools": [tool, LOOK], "context": context });
                self.call_at("create_execution_plan", &arguments, at);
            }
            2 => self.call_tool_at_the_command_line(),
            3 => self.call_tool_over_http(),
            _ => {
                let (order, tool, parameters) = self.direct_call();
                let arguments = json!({ "tool": tool, "parameters": parameters, "reason": "because" });
                let answer = self.call("call_tool", &arguments, &order);
                self.remember_direct(&answer, order);
            }
        }
    }

    /// A call beside all plans, with an order of its own: what a person denied is denied in that execution only.
    fn direct_call(&mut self) -> (String, &'static str, Value) {
        let order = self.new_order();
        self.person.record.open(&order, true);
        let (tool, parameters) = self.unplanned_call(&order);
        (order, tool, parameters)
    }

    fn remember_direct(&mut self, answer: &Value, order: String) {
        if let Some(id) = answer["execution_id"].as_str() {
            self.tally.count("direct calls");
            self.direct.push((id.to_owned(), order));
        }
    }

    pub(super) fn call_tool_over_http(&mut self) {
        let (order, tool, parameters) = self.direct_call();
        let body = json!({ "parameters": parameters, "reason": "because" });
        let answer = self.http("POST", &format!("/tools/{tool}/call"), &body);
        self.remember_direct(&answer, order);
    }

    /// An agent with a shell: the call is judged as one of the person at the terminal.
    fn call_tool_at_the_command_line(&mut self) {
        let (_, tool, parameters) = self.direct_call();
        self.lines.push(format!("agent: rutter tools call {tool} {parameters}"));
        let mut command = self.installation.rutter(&["tools", "call", tool, &parameters.to_string(), "--json"]);
        let output = command.output().unwrap();
        self.tally.count("calls at the command line");
        self.tell("tools call", &serde_json::from_slice(&output.stdout).unwrap_or_default());
    }

    /// A call that no plan guards: only the policy does.
    fn unplanned_call(&mut self, order: &str) -> (&'static str, Value) {
        loop {
            let (tool, parameters) = guarded_call(&mut self.random, order);
            if tool != INVOICE {
                return (tool, parameters);
            }
        }
    }
}
