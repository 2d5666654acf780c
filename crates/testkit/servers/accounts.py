"""The three accounts of one directory: the harness's notes (notes.jsonl), the journal (export.jsonl) and the tools' log
(effects.log), read without any code of the program. Only the standard library is used.
"""
import collections
import hashlib
import json
import re

FORWARD = {"do", "fallback"}
# The unique texts that requests carry into the journal.
MARK = re.compile(r"because-[0-9a-z]+-[0-9]+")


def fields(tag, *parts):
    digest = hashlib.sha256()
    for part in (tag.encode(), *parts):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


class Entry:
    def __init__(self, line):
        self.execution, self.seq, self.hash = line["execution"], line["seq"], line["hash"]
        stored = json.loads(line["bytes"])
        self.at, self.actor = stored["at"], stored.get("actor", {}).get("party")
        (self.kind, self.body), = stored["event"].items()
        self.payloads = {kept["kept"]["commitment"]: kept["kept"]["bytes"] for kept in line["payloads"] if "kept" in kept}
        self.part, self.side = self.body.get("part"), self.body.get("side")
        self.step = self.part.partition("[")[0] if self.part else self.body.get("step")
        self.is_agents = self.body.get("by") == "agent"
        # With the reasons of people, whatever they look like.
        self.marks = {self.body.get("reason"), *MARK.findall(line["bytes"]), *(mark for kept in self.payloads.values() for mark in MARK.findall(kept))}

    def payload(self, name):
        return json.loads(self.payloads[self.body[name]["payload"]])

    def is_success(self):
        done = self.kind == "attempt_succeeded" or (self.kind == "doubt_settled" and self.body["happened"])
        return done and self.side in FORWARD

    def is_late_success(self):
        """Whether an attempt that was given up turns out to have been its call's only one."""
        late = self.kind == "late_answer_arrived" and self.body.get("effect") == "only" and self.side in FORWARD
        return late and "done" in self.body["answer"]

    def undoes(self, part):
        """Whether the part's effect is gone after this."""
        by_call = self.kind == "attempt_succeeded" or (self.kind == "doubt_settled" and self.body["happened"])
        return self.part == part and (self.kind == "compensation_recorded" or (by_call and self.side == "undo"))

    def answers(self, kind):
        """The step or part of the question, if this answers one of that kind."""
        return self.body["about"].get(kind) if self.kind == "question_answered" and isinstance(self.body["about"], dict) else None

    def __str__(self):
        return f"{self.execution} entry {self.seq} ({self.kind} {self.part or self.step or ''} {self.side or ''})"


class Execution:
    def __init__(self, entries, plans, replans):
        self.id, self.entries = entries[0].execution, entries
        opened = entries[0]
        self.tag = opened.payload("inputs").get("tag") if opened.kind == "execution_opened" else None
        self.driver = opened.body.get("driver", "server")
        # What the program began, and what anybody began.
        self.attempts = [entry for entry in entries if entry.kind == "attempt_started"]
        self.starts = [entry for entry in self.attempts if not entry.is_agents]
        self.revisions, self.unknown = self.plans_in_force(plans.get(self.tag), replans)

    def plans_in_force(self, first, replans):
        """The plans with the entry from which on each is in force, and the entries that name a plan nobody sent."""
        revisions, unknown, known = [(0, first)], [], {}
        for entry in self.of("replan_proposed", "replanned"):
            document = replans.get((self.id, entry.body["reason"]), known.get(entry.body["plan"]))
            known[entry.body["plan"]] = document
            if entry.kind == "replanned":
                revisions.append((entry.seq, document))
                if document is None:
                    unknown.append(entry)
        return revisions, unknown

    def plan_at(self, seq):
        """The plan in force before an entry."""
        return [plan for since, plan in self.revisions if since < seq][-1] or {"steps": []}

    def step_at(self, step, seq):
        """A step as the newest plan before an entry has it that has it at all: what is dropped can still be undone."""
        for since, plan in reversed(self.revisions):
            found = [one for one in (plan or {"steps": []})["steps"] if one["id"] == step]
            if since < seq and found:
                return found[0]
        return {}

    def renewed_by(self, replan):
        """The steps that a new plan drops or calls otherwise, as the plan before has them: if they come back, they begin anew."""
        call = lambda step: [step.get(field) for field in ("tool", "parameters", "for_each")]
        plan = {step["id"]: step for step in self.plan_at(replan.seq + 1)["steps"]}
        old = self.plan_at(replan.seq)["steps"]
        return [step for step in old if step["id"] not in plan or call(plan[step["id"]]) != call(step)]

    def settle_ms(self, entry):
        """How old a doubt about its step must be before a probe's "no" counts, as its plan says in seconds."""
        probe = self.step_at(entry.step, entry.seq).get("probe", {})
        return int(probe.get("settle", "0s").removesuffix("s")) * 1000

    def of(self, *kinds):
        return [entry for entry in self.entries if entry.kind in kinds]

    def by_call(self):
        """What the program began, by call."""
        grouped = collections.defaultdict(list)
        for start in self.starts:
            grouped[start.part, start.side].append(start)
        return grouped

    def before(self, last):
        return [entry for entry in self.entries if entry.seq < last.seq]

    def between(self, first, last):
        return [entry for entry in self.entries if first.seq < entry.seq < last.seq]


class Accounts:
    def __init__(self, directory):
        self.chain_problems = []
        self.notes = self.lines(directory / "notes.jsonl")
        heading = next(note for note in self.notes if "limits" in note)
        self.limits, self.once, self.keyed = heading["limits"], set(heading["once"]), set(heading["keyed"])
        plans = {note["plan"]: note["document"] for note in self.notes if "plan" in note}
        replans = {(note["replan"], note["reason"]): note["document"] for note in self.notes if "replan" in note}
        self.log = self.lines(directory / "effects.log")
        journals = collections.defaultdict(list)
        for entry in self.entries(directory / "export.jsonl"):
            journals[entry.execution].append(entry)
        journals.pop("ledger", None)
        self.executions = {name: Execution(entries, plans, replans) for name, entries in journals.items()}
        self.by_tag = collections.defaultdict(list)
        for execution in self.executions.values():
            self.by_tag[execution.tag].append(execution)
        self.read_log()

    def read_log(self):
        """What the tools saw of the program, by part: calls, calls that reached the tool, effects. Agents call, too."""
        self.seen, self.heard, self.effects = (collections.defaultdict(list) for _ in range(3))
        self.agent_calls = 0
        for line in self.log:
            if str(line.get("life")).startswith("agent-"):
                self.agent_calls += "call" in line
                continue
            if "call" in line:
                self.seen[self.who(line)].append(line)
            if "effect" in line or "seen" in line:
                self.heard[self.who(line)].append(line)
            if "effect" in line:
                self.effects[self.who(line)].append(line)

    @staticmethod
    def lines(path):
        if not path.exists():
            return []
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def entries(self, path):
        """Reads the export and verifies every chain."""
        tenant, heads = None, {}
        for line in self.lines(path):
            if "header" in line:
                tenant = line["header"]["tenant"].encode()
            if "entry" not in line:
                continue
            line = line["entry"]
            name = line["execution"]
            seq, head = heads.get(name, (0, fields("rutter/journal/v1", tenant, name.encode())))
            stored = line["bytes"].encode()
            found = hashlib.sha256(b"rutter/entry/v1" + bytes.fromhex(line["prev"]) + stored).hexdigest()
            if (line["seq"], line["prev"], line["hash"]) != (seq + 1, head.hex(), found):
                self.chain_problems.append(f"{name} entry {line['seq']} does not follow from the one before it")
            for payload in line["payloads"]:
                kept = payload.get("kept")
                if kept and fields("rutter/payload/v1", bytes.fromhex(kept["salt"]), kept["bytes"].encode()).hex() != kept["commitment"]:
                    self.chain_problems.append(f"{name} entry {line['seq']} has a payload without a commitment")
            heads[name] = (line["seq"], bytes.fromhex(line["hash"]))
            yield Entry(line)

    @staticmethod
    def who(line):
        arguments = line["arguments"]
        item = arguments.get("item")
        part = arguments.get("step", "") + ("" if item is None else f"[{item}]")
        return arguments.get("tag"), part, arguments.get("side")
