//! From a draft to a plan: compiles expressions, resolves names, fills in defaults.
//!
//! Reports only what cannot be built at all. Around a broken part the rest is still built, so that the other
//! checks can examine everything else; a sketch with an error never becomes a plan.

use super::edge;
use crate::diagnostic::{Diagnostic, DiagnosticSeverity};
use crate::id::{StepId, ToolName};
use crate::limits;
use crate::plan::draft::{
    CallDraft, CompensationDraft, FanOutDraft, PlanDraft, PolicyDraft, ProbeDraft, RetryDraft, StepDraft,
};
use crate::plan::expression::Expression;
use crate::plan::graph::StepGraph;
use crate::plan::schema::{SchemaLookup, schema_at};
use crate::plan::stored;
use crate::plan::template::ParameterTemplate;
use crate::plan::{
    ApprovalRule, Cancellable, Compensation, ExecutionBudget, FailurePolicy, FailureTolerance, FallbackCall,
    FanOutRule, Plan, PlanDescription, PlannedCall, PolicyAction, Probe, RetryPolicy, Step,
};
use crate::pointer;
use crate::tool::{Safety, Tool};
use crate::wording::{self, SpellingGuess, quoted};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

pub(super) type KnownTools = BTreeMap<ToolName, Arc<Tool>>;

/// Every guess compares with every known name, so their number per plan is limited.
const GUESSES_MAX: u32 = 50;

/// A plan under construction.
#[derive(Debug)]
pub(super) struct PlanSketch<'a> {
    pub(super) draft: &'a PlanDraft,
    pub(super) tools: &'a KnownTools,
    /// Servers that cannot be reached, and why.
    pub(super) unreachable: Option<&'a BTreeMap<String, String>>,
    /// One per step of the draft, in its order.
    pub(super) steps: Vec<Step>,
    /// If several steps share an id, the first one.
    pub(super) index: HashMap<StepId, usize>,
    /// Pointers of calls whose parameters did not compile; they are not checked further.
    pub(super) broken: HashSet<String>,
    guesses_left: Cell<u32>,
    /// A cache of schema lookups, by the schema's address: many steps use the same tools.
    looked_up: RefCell<HashMap<(usize, String), SchemaLookup>>,
    /// `None` if there is a dependency cycle.
    pub(super) graph: Option<StepGraph>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl<'a> PlanSketch<'a> {
    pub(super) fn draw(draft: &'a PlanDraft, tools: &'a KnownTools) -> PlanSketch<'a> {
        let mut sketch = PlanSketch {
            draft,
            tools,
            unreachable: None,
            steps: Vec::with_capacity(draft.steps.len()),
            index: HashMap::with_capacity(draft.steps.len()),
            broken: HashSet::new(),
            guesses_left: Cell::new(GUESSES_MAX),
            looked_up: RefCell::default(),
            graph: None,
            diagnostics: Vec::new(),
        };
        if draft.steps.is_empty() {
            sketch.diagnostics.push(Diagnostic::error("plan.no_steps", "/steps", "a plan needs at least one step"));
        }
        sketch.number_steps();
        for step in &draft.steps {
            let step = sketch.step(step);
            sketch.steps.push(step);
        }
        let (edges, found) = edge::collect(&sketch);
        sketch.diagnostics.extend(found);
        match StepGraph::build(sketch.steps.len(), &edges) {
            Ok(graph) => sketch.graph = Some(graph),
            Err(cycles) => {
                let found = cycles.iter().map(|cycle| edge::ring(&sketch, cycle));
                sketch.diagnostics.extend(found.collect::<Vec<_>>());
            }
        }
        sketch
    }

    /// The plan, if there is no error.
    pub(super) fn into_plan(self) -> Option<Plan> {
        let fine = self.diagnostics.iter().all(|found| found.severity != DiagnosticSeverity::Error);
        let graph = self.graph.filter(|_| fine)?;
        let draft = self.draft;
        let mut tools = BTreeMap::new();
        for call in self.steps.iter().flat_map(Step::calls) {
            if let Some(tool) = self.tools.get(&call.tool).filter(|_| !tools.contains_key(&call.tool)) {
                tools.insert(call.tool.clone(), Arc::clone(tool));
            }
        }
        Some(Plan {
            hash: stored::hash(&draft.source, &tools),
            source: Arc::clone(&draft.source),
            format: draft.format,
            name: draft.name.clone(),
            goal: draft.goal.clone(),
            about: PlanDescription {
                description: draft.description.clone(),
                request: draft.request.clone(),
                reasoning: draft.reasoning.clone(),
                tags: draft.tags.clone(),
                metadata: draft.metadata.clone(),
            },
            inputs: draft.inputs.as_ref().map(|inputs| Arc::new(inputs.schema.clone())),
            max_parallel: max_parallel(draft),
            deadline: draft.deadline.unwrap_or(limits::DEADLINE_DEFAULT),
            agent_timeout: draft.agent_timeout.unwrap_or(limits::AGENT_TIMEOUT_DEFAULT),
            on_agent_silence: draft.on_agent_silence.unwrap_or_default(),
            budget: ExecutionBudget {
                calls: draft.budget.calls,
                // A cast from float saturates, and an amount below a millionth rounds to zero.
                cost_micros: draft.budget.cost.map(|cost| (cost * 1e6).round() as u64),
                time: draft.budget.time,
            },
            on_failure: draft.on_failure.unwrap_or(PolicyAction::ManualDecision),
            graph,
            tools,
            index: self.index,
            steps: self.steps.into_iter().map(Arc::new).collect(),
        })
    }

    /// The pointer of the plan in the document: its root, or a field of an envelope.
    pub(super) fn root(&self) -> &'a str {
        let first = self.draft.steps.first().and_then(|step| step.pointer.strip_suffix("/steps/0"));
        first.unwrap_or_default()
    }

    pub(super) fn step_ids(&self) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
        self.draft.steps.iter().map(|step| step.id.as_str())
    }

    pub(super) fn tool(&self, call: &PlannedCall) -> Option<&'a Arc<Tool>> {
        self.tools.get(&call.tool)
    }

    /// Why the server of a tool cannot be reached, if it cannot.
    pub(super) fn unreachable(&self, tool: &str) -> Option<(&'a str, &'a str)> {
        let (server, _) = tool.split_once('.')?;
        let (server, why) = self.unreachable?.get_key_value(server)?;
        Some((server, why))
    }

    /// Looks up a path in a schema of this plan or of its tools.
    pub(super) fn look_up(&self, schema: &Value, path: &[String]) -> SchemaLookup {
        let key = (std::ptr::from_ref(schema).addr(), path.join("/"));
        self.looked_up.borrow_mut().entry(key).or_insert_with(|| schema_at(schema, path)).clone()
    }

    /// Guesses what was meant, up to a limit for the whole plan.
    pub(super) fn guess<'w>(
        &self,
        word: &str,
        known: impl Iterator<Item = &'w str> + Clone,
    ) -> Option<SpellingGuess<'w>> {
        let left = self.guesses_left.get().checked_sub(1)?;
        self.guesses_left.set(left);
        wording::guess(word, known)
    }

    fn number_steps(&mut self) {
        for (position, step) in self.draft.steps.iter().enumerate() {
            let first = *self.index.entry(StepId::new(&step.id)).or_insert(position);
            if first != position {
                let message =
                    format!("the id {} is already taken by {}", quoted(&step.id), self.draft.steps[first].pointer);
                let pointer = format!("{}/{}", step.pointer, step.id_key);
                self.diagnostics.push(
                    Diagnostic::error("plan.duplicate_id", pointer, message)
                        .hint("give every step an id of its own: other steps and the journal refer to it by this"),
                );
            }
        }
    }

    fn step(&mut self, draft: &StepDraft) -> Step {
        let call = self.call(&draft.call, None);
        let fallback = draft.fallback.as_ref().map(|fallback| FallbackCall {
            call: self.call(&fallback.call, None),
            compensation: fallback.compensation.as_ref().map(|draft| self.compensation(draft)),
        });
        let compensation = draft.compensation.as_ref().map(|draft| self.compensation(draft));
        let cancellable = draft.cancellable.unwrap_or({
            let nothing_to_undo = call.safety == Safety::ReadOnly;
            if nothing_to_undo || compensation.is_some() { Cancellable::Reversible } else { Cancellable::Irreversible }
        });
        Step {
            id: StepId::new(&draft.id),
            name: draft.name.clone(),
            description: draft.description.clone(),
            when: draft.when.as_deref().and_then(|text| self.expression(text, format!("{}/when", draft.pointer))),
            else_of: draft.else_of.as_ref().and_then(|(id, _)| self.index.get(id.as_str()).copied()),
            for_each: draft.for_each.as_ref().and_then(|fan_out| self.fan_out(fan_out)),
            probe: draft.probe.as_ref().and_then(|probe| self.probe(probe)),
            approval: draft
                .approval
                .as_ref()
                .filter(|approval| approval.required)
                .map(|approval| ApprovalRule { expires: approval.expires.unwrap_or(limits::APPROVAL_EXPIRES_DEFAULT) }),
            policy: self.policy(draft.failure_policy.as_ref()),
            timeout_total: draft.timeout_total,
            priority: draft.priority.unwrap_or(0),
            output: draft.output.clone().map(Arc::new),
            call,
            fallback,
            cancellable,
            compensation,
        }
    }

    /// `attempts` overrides the default number of attempts, also the plan's own.
    fn call(&mut self, draft: &CallDraft, attempts: Option<u32>) -> PlannedCall {
        let name = ToolName::new(&draft.tool);
        let tool = self.tools.get(&name);
        let parameters = self.template(draft);
        let settings = tool.map(|tool| tool.attempts.clone()).unwrap_or_default();
        let of_tool = settings.retry.unwrap_or_default();
        let attempts = of_tool.max_attempts.or(attempts);
        let retry = overlay(RetryPolicy::standard(), Some(&RetryDraft::from(of_tool)));
        let mut retry = overlay(retry, self.draft.defaults.retry.as_ref());
        retry.max_attempts = attempts.unwrap_or(retry.max_attempts);
        let usual = settings.timeout.unwrap_or(limits::ATTEMPT_TIMEOUT_DEFAULT);
        // What the plan says for this call alone is checked, not cut.
        let usual =
            self.draft.defaults.timeout.unwrap_or(usual).min(settings.timeout_max.unwrap_or(limits::TIMEOUT_MAX));
        PlannedCall {
            keyed: tool.is_some_and(|tool| is_keyed(tool, &parameters)),
            key_window: tool.and_then(|tool| tool.key_window).unwrap_or(limits::KEY_WINDOW_DEFAULT),
            safety: tool.map_or(Safety::Once, |tool| tool.safety).max(draft.safety.unwrap_or(Safety::ReadOnly)),
            timeout: draft.timeout.unwrap_or(usual),
            has_own_timeout: draft.timeout.or(self.draft.defaults.timeout).is_some(),
            retry: overlay(retry, draft.retry.as_ref()),
            tool: name,
            parameters,
        }
    }

    fn compensation(&mut self, draft: &CompensationDraft) -> Compensation {
        Compensation {
            call: self.call(&draft.call, Some(limits::COMPENSATION_ATTEMPTS_DEFAULT)),
            probe: draft.probe.as_ref().and_then(|probe| self.probe(probe)),
        }
    }

    fn probe(&mut self, draft: &ProbeDraft) -> Option<Probe> {
        let at = &draft.call.pointer;
        let call = self.call(&draft.call, None);
        let happened = self.expression(&draft.happened, format!("{at}/happened"));
        let result = draft.result.as_deref().and_then(|text| self.expression(text, format!("{at}/result")));
        Some(Probe { call, happened: happened?, result, settle: draft.settle })
    }

    fn fan_out(&mut self, draft: &FanOutDraft) -> Option<FanOutRule> {
        Some(FanOutRule {
            items: self.expression(&draft.items, draft.items_pointer.clone())?,
            max_parallel: draft.max_parallel.unwrap_or_else(|| max_parallel(self.draft)),
            max_items: draft.max_items.unwrap_or(limits::FAN_OUT_DEFAULT),
            tolerate: draft.tolerate.unwrap_or(FailureTolerance::NONE),
        })
    }

    fn policy(&mut self, draft: Option<&PolicyDraft>) -> FailurePolicy {
        let mut policy = FailurePolicy {
            action: self.draft.on_failure.unwrap_or(PolicyAction::ManualDecision),
            propagate_to: Vec::new(),
            reason: String::new(),
        };
        if let Some(draft) = draft {
            policy.action = draft.action.unwrap_or(policy.action);
            policy.reason = draft.reason.clone();
            for (id, pointer) in &draft.propagate_to {
                match self.index.get(id.as_str()) {
                    Some(&step) => policy.propagate_to.push(step),
                    None => {
                        let message = format!("\"propagate_to\" names {}, which is not in the plan", quoted(id));
                        let found = edge::unknown_step(self, pointer, id, message);
                        self.diagnostics.push(found);
                    }
                }
            }
            policy.propagate_to.sort_unstable();
            policy.propagate_to.dedup();
        }
        policy
    }

    fn expression(&mut self, text: &str, pointer: String) -> Option<Expression> {
        let error = match Expression::compile(text) {
            Ok(expression) => return Some(expression),
            Err(error) => error,
        };
        // In the document it may be in braces, which are not part of it.
        let written = self.draft.document.pointer(&pointer).and_then(Value::as_str).unwrap_or(text);
        let start = written.find(text).unwrap_or_default();
        let range = error.range.clone().map(|range| start + range.start..start + range.end);
        self.diagnostics.push(edge::refused(&error, written, range.as_ref(), pointer));
        None
    }

    fn template(&mut self, draft: &CallDraft) -> ParameterTemplate {
        ParameterTemplate::compile(Arc::clone(&draft.parameters)).unwrap_or_else(|errors| {
            self.broken.insert(draft.pointer.clone());
            for error in &errors {
                let pointer = format!("{}/parameters{}", draft.pointer, error.pointer);
                let text = draft.parameters.pointer(&error.pointer).and_then(Value::as_str).unwrap_or_default();
                let mut found = edge::refused(&error.error, text, error.range.as_ref(), pointer);
                if error.pointer.ends_with("/secret") {
                    found.code = "plan.secret";
                }
                self.diagnostics.push(found);
            }
            ParameterTemplate::compile(Arc::new(Value::Object(serde_json::Map::new())))
                .expect("an empty object holds no expression")
        })
    }
}

fn max_parallel(draft: &PlanDraft) -> u32 {
    draft.max_parallel.unwrap_or(1)
}

/// The draft's values over the base policy.
pub(super) fn overlay(base: RetryPolicy, draft: Option<&RetryDraft>) -> RetryPolicy {
    let Some(draft) = draft else { return base };
    RetryPolicy {
        max_attempts: draft.max_attempts.unwrap_or(base.max_attempts),
        backoff: draft.backoff.unwrap_or(base.backoff),
        initial: draft.initial.unwrap_or(base.initial),
        factor: draft.factor.unwrap_or(base.factor),
        max: draft.max.unwrap_or(base.max),
        jitter: draft.jitter.unwrap_or(base.jitter),
        on: draft.on.clone().unwrap_or(base.on),
    }
}

/// Whether the tool gets the key with this call, and drops repeats of it.
fn is_keyed(tool: &Tool, parameters: &ParameterTemplate) -> bool {
    tool.sends_key || tool.key_parameter.as_deref().is_some_and(|key| passes_key(parameters, key))
}

/// Whether a parameter is the idempotency key and nothing else.
pub(super) fn passes_key(parameters: &ParameterTemplate, name: &str) -> bool {
    parameters.whole(&pointer::field("", name)).is_some_and(|expression| expression.source.trim() == "key")
}
