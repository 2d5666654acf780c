#!/usr/bin/env python3
"""Checks the promises against three independent accounts: the harness's notes (notes.jsonl), the journal
(export.jsonl) and the tools' log (effects.log).

Written from docs/journal-format.md and the list of invariants, without any code of the program. Prints one JSON object per
violation of each directory given, then its counts; the exit code is 1 if there was a violation. Only the standard
library is used.
"""
import collections
import hashlib
import json
import pathlib
import sys

ENDED = {"completed", "partial", "failed", "cancelled", "compensated"}
FORWARD = {"do", "fallback"}
# The clock of the program and that of the tools are read at different moments, and one of them in whole milliseconds.
CLOCKS_APART_MS = 50


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
        self.at = stored["at"]
        (self.kind, self.body), = stored["event"].items()
        self.payloads = {kept["kept"]["commitment"]: kept["kept"]["bytes"] for kept in line["payloads"] if "kept" in kept}
        self.part, self.side = self.body.get("part"), self.body.get("side")
        self.step = self.part.partition("[")[0] if self.part else self.body.get("step")

    def payload(self, name):
        return json.loads(self.payloads[self.body[name]["payload"]])

    def is_success(self):
        done = self.kind == "attempt_succeeded" or (self.kind == "doubt_settled" and self.body["happened"])
        return done and self.side in FORWARD

    def answers(self, kind):
        """The step or part of the question, if this answers one of that kind."""
        return self.body["about"].get(kind) if self.kind == "question_answered" and isinstance(self.body["about"], dict) else None

    def __str__(self):
        return f"{self.execution} entry {self.seq} ({self.kind} {self.part or self.step or ''} {self.side or ''})"


class Execution:
    def __init__(self, entries, plans):
        self.id, self.entries = entries[0].execution, entries
        opened = entries[0]
        self.tag = opened.payload("inputs").get("tag") if opened.kind == "execution_opened" else None
        self.plan = plans.get(self.tag)
        self.starts = [entry for entry in entries if entry.kind == "attempt_started"]

    def of(self, *kinds):
        return [entry for entry in self.entries if entry.kind in kinds]

    def by_call(self):
        grouped = collections.defaultdict(list)
        for start in self.starts:
            grouped[start.part, start.side].append(start)
        return grouped

    def between(self, first, last):
        return [entry for entry in self.entries if first.seq < entry.seq < last.seq]


class Case:
    def __init__(self, directory):
        self.violations, self.chain_problems = [], []
        self.notes = self.lines(directory / "notes.jsonl")
        heading = next(note for note in self.notes if "limits" in note)
        self.limits, self.once, self.keyed = heading["limits"], set(heading["once"]), set(heading["keyed"])
        plans = {note["plan"]: note["document"] for note in self.notes if "plan" in note}
        self.log = self.lines(directory / "effects.log")
        journals = collections.defaultdict(list)
        for entry in self.entries(directory / "export.jsonl"):
            journals[entry.execution].append(entry)
        journals.pop("ledger", None)
        self.executions = {name: Execution(entries, plans) for name, entries in journals.items()}
        self.by_tag = collections.defaultdict(list)
        for execution in self.executions.values():
            self.by_tag[execution.tag].append(execution)

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

    def violated(self, invariant, evidence):
        self.violations.append({"invariant": invariant, "evidence": evidence})

    def calls(self):
        """The calls the tools saw, by part."""
        grouped = collections.defaultdict(list)
        for line in self.log:
            if "call" in line:
                grouped[self.who(line)].append(line)
        return grouped

    @staticmethod
    def who(line):
        arguments = line["arguments"]
        item = arguments.get("item")
        part = arguments.get("step", "") + ("" if item is None else f"[{item}]")
        return arguments.get("tag"), part, arguments.get("side")

    def check(self):
        self.acknowledged()
        self.intended()
        for execution in self.executions.values():
            self.repeated(execution)
            self.keys(execution)
            self.outcomes(execution)
            self.stopped(execution)
            self.order(execution)
            self.undone(execution)
        self.intact()
        self.crowded()
        self.settled()
        self.worthwhile()
        for note in self.notes:
            if "broken" in note:
                self.violated("process", f"{note['life']} ended with {note['code']}: {note['broken']}")

    def acknowledged(self):
        """I1: what was acknowledged is in the journal; what was refused is not."""
        for tag, executions in self.by_tag.items():
            if len(executions) > 1:
                self.violated("I1", f"one key began {len(executions)} executions: {[one.id for one in executions]} ({tag})")
        reasons = collections.Counter(
            (name, entry.body.get("reason")) for name, execution in self.executions.items() for entry in execution.entries)
        for note in self.notes:
            if "started" in note:
                execution = self.executions.get(note["started"])
                if execution is None or execution.tag != note["tag"]:
                    self.violated("I1", f"{note['started']} was started for {note['tag']} and is not in the journal")
                elif note["code"] == 0 and not self.has_ended_as(execution, "completed"):
                    self.violated("I1", f"{note['started']} was reported as completed and is not")
            if "acknowledged" in note:
                told = note["acknowledged"]
                found = reasons[told["execution"], told["reason"]]
                # An undo without effects, or of an execution that ended meanwhile, may leave one entry; never two for one request.
                if found == 0:
                    self.violated("I1", f"{told['what']} of {told['execution']} was acknowledged ({told['reason']}) and is not in the journal")
            if "refused" in note:
                told = note["refused"]
                if reasons[told["execution"], told["reason"]]:
                    self.violated("I1", f"{told['what']} of {told['execution']} was refused ({note['code']}) and is in the journal")
            if "concluded" in note:
                self.concluded(note)

    def concluded(self, note):
        receipt = note["receipt"]
        execution = self.executions.get(note["concluded"])
        entries = execution.entries if execution else []
        if not any(entry.seq == receipt["seq"] and entry.hash == receipt["hash"] for entry in entries):
            self.violated("I1", f"the receipt for {note['concluded']} entry {receipt['seq']} matches nothing in the journal")
        elif note["status"] in ENDED and not self.has_ended_as(execution, note["status"]):
            self.violated("I1", f"{note['concluded']} was reported as {note['status']} and is not")

    @staticmethod
    def has_ended_as(execution, status):
        return any(entry.body["outcome"] == status for entry in execution.of("execution_ended"))

    def intended(self):
        """I2: every call a tool saw was recorded before."""
        for (tag, part, side), calls in self.calls().items():
            starts = [start for execution in self.by_tag.get(tag, []) for start in execution.starts
                      if (start.part, start.side) == (part, side)]
            for place, call in enumerate(sorted(calls, key=lambda call: call["at"])):
                tool = f"{call['server']}.{call['call']}"
                before = [start for start in starts if start.at <= call["at"] * 1000 + CLOCKS_APART_MS
                          and start.body["tool"] == tool and start.payload("parameters") == call["arguments"]]
                if len(before) <= place:
                    self.violated("I2", f"call {place + 1} of {tool} for {tag} {part} {side} at {call['at']:.3f} was seen, "
                                        f"and {len(before)} attempts were recorded before it")

    def repeated(self, execution):
        """I3: a call that may happen once is sent again only with a recorded permission."""
        for (part, side), starts in execution.by_call().items():
            if starts[0].body["tool"] not in self.once:
                continue
            for first, again in zip(starts, starts[1:]):
                if not any(self.permits(entry, first) for entry in execution.between(first, again)):
                    self.violated("I3", f"{again} repeats a call that may have happened")
            seen = len(self.seen.get((execution.tag, part, side), []))
            if seen > len(starts):
                self.violated("I3", f"{execution.id}: {part} {side} was called {seen} times, {len(starts)} were permitted")

    @staticmethod
    def permits(entry, first):
        same = (entry.part, entry.side) == (first.part, first.side)
        if entry.kind == "attempt_failed" and same:
            return entry.body["attempt"] == first.body["attempt"] and not entry.body["maybe"]
        if entry.kind == "doubt_settled" and same:
            return not entry.body["happened"]
        retried = entry.kind == "question_answered" and entry.body["answer"] == "retry"
        return retried and (entry.answers("failure") == first.step or entry.answers("compensation") == first.part)

    def keys(self, execution):
        """I4: one key for all attempts of a call, and for no other call; only a probe uses the key of the call it searches for."""
        owners = {}
        for (part, side), starts in execution.by_call().items():
            keys = {start.body["key"] for start in starts}
            undone = any(entry.kind == "attempt_succeeded" and (entry.part, entry.side) == (part, "undo") for entry in execution.entries)
            if len(keys) > 1 and not undone:
                self.violated("I4", f"{execution.id}: {part} {side} had {len(keys)} keys")
            for key in keys if side != "probe" else []:
                if owners.setdefault(key, (part, side)) != (part, side):
                    self.violated("I4", f"{execution.id}: {part} {side} has the key of {owners[key]}")
            if starts[0].body["tool"] in self.keyed:
                seen = {line.get("key") for line in self.heard.get((execution.tag, part, side), [])}
                if len(seen) > len(keys):
                    self.violated("I4", f"{execution.id}: the tool saw {len(seen)} keys for {part} {side}: {sorted(map(str, seen))}")

    def outcomes(self, execution):
        """I5: one end per attempt, one success per step, nothing after the end."""
        closed, succeeded, numbers, over = collections.Counter(), set(), collections.Counter(), None
        for entry in execution.entries:
            attempt = (entry.part, entry.side, entry.body.get("attempt"))
            if entry.kind in ("attempt_succeeded", "attempt_failed", "attempt_lost"):
                closed[attempt] += 1
                if closed[attempt] > 1:
                    self.violated("I5", f"{entry} ends an attempt for the second time")
            if entry.kind == "attempt_started":
                numbers[entry.part, entry.side] += 1
                if numbers[entry.part, entry.side] != entry.body["attempt"] and entry.side != "probe":
                    self.violated("I5", f"{entry} is attempt {entry.body['attempt']} after {numbers[entry.part, entry.side] - 1}")
                if entry.side in FORWARD and entry.part in succeeded:
                    self.violated("I5", f"{entry} starts what had succeeded")
                if over is not None:
                    self.violated("I5", f"{entry} comes after the end in entry {over.seq}")
            if entry.is_success():
                if entry.part in succeeded:
                    self.violated("I5", f"{entry} is a second success")
                succeeded.add(entry.part)
            if entry.kind == "attempt_succeeded" and entry.side == "undo":
                succeeded.discard(entry.part)
            if entry.kind == "execution_ended":
                if over is not None:
                    self.violated("I5", f"{entry} ends what ended in entry {over.seq}")
                over = entry
            if entry.kind == "compensation_started":
                over = None

    def stopped(self, execution):
        """I6: nothing starts after a cancel or during a pause."""
        cancelled = paused = None
        for entry in execution.entries:
            if entry.kind in ("cancel_requested", "killed"):
                cancelled = entry
            if entry.kind == "paused":
                paused = entry
            if entry.kind == "resumed" or (entry.kind == "compensation_started" and paused is None):
                paused = None
            if entry.kind != "attempt_started":
                continue
            if cancelled is not None and (entry.side in FORWARD or (cancelled.kind == "killed" and entry.side != "undo")):
                self.violated("I6", f"{entry} starts after {cancelled}")
            if paused is not None:
                self.violated("I6", f"{entry} starts after {paused}")

    def order(self, execution):
        """I7: a step starts after its dependencies have settled."""
        if execution.plan is None:
            return self.violated("I7", f"{execution.id} executes a plan the harness never wrote ({execution.tag})")
        for step in execution.plan["steps"]:
            begun = next((entry for entry in execution.entries if entry.step == step["id"]
                          and (entry.kind == "fan_out_opened" or (entry.kind == "attempt_started" and entry.side in FORWARD))), None)
            for need in step.get("depends_on", []) if begun else []:
                before = [entry for entry in execution.entries if entry.seq < begun.seq]
                if not self.is_at_rest(need, before):
                    self.violated("I7", f"{begun} starts before {need} has settled")

    @staticmethod
    def is_at_rest(step, entries):
        left, under_way, rested = 1, set(), False
        for entry in entries:
            body = entry.body
            if step in body.get("steps", []) + body.get("skipped", []) + body.get("cancelled", []):
                rested = True
            if entry.kind == "failure_handled" and body["step"] == step and body["action"] != "manual_decision":
                rested = True
            if entry.answers("failure") == step:
                rested = body["answer"] in ("skip", "continue", "resolve")
            if entry.step != step or entry.side not in FORWARD | {None}:
                continue
            if entry.kind == "fan_out_opened":
                left = body["count"]
            if entry.kind == "attempt_started":
                under_way.add(entry.part)
            if entry.kind in ("attempt_succeeded", "attempt_failed", "doubt_settled"):
                under_way.discard(entry.part)
            if entry.is_success():
                left -= 1
        return not under_way and (rested or left <= 0)

    def undone(self, execution):
        """I10: effects are undone in reverse order, each once."""
        ends = {}
        for entry in execution.entries:
            if entry.is_success():
                ends[entry.part] = entry.seq
            if entry.kind == "compensation_started":
                known = [part for part in entry.body["parts"] if part in ends]
                for later, earlier in zip(known, known[1:]):
                    if ends[later] < ends[earlier]:
                        self.violated("I10", f"{entry} undoes {later} before {earlier}, which was done later")
                self.undone_in_order(execution, entry)
        for (tag, part, side), effects in self.effects.items():
            if side != "undo" or tag != execution.tag:
                continue
            permitted = 1 + sum(1 for entry in execution.of("doubt_settled") if (entry.part, entry.side) == (part, "undo") and not entry.body["happened"])
            redone = sum(1 for start in execution.starts if start.part == part and start.side in FORWARD and any(
                entry.kind == "attempt_succeeded" and (entry.part, entry.side) == (part, "undo") and entry.seq < start.seq for entry in execution.entries))
            if len(effects) > permitted + redone:
                self.violated("I10", f"{execution.id}: {part} was undone {len(effects)} times")

    def undone_in_order(self, execution, compensation):
        plan = {step["id"]: step for step in (execution.plan or {"steps": []})["steps"]}
        above = {}

        def needs(step):
            if step not in above:
                direct = plan.get(step, {}).get("depends_on", [])
                above[step] = set(direct).union(*(needs(need) for need in direct))
            return above[step]

        left = list(compensation.body["parts"])
        for entry in execution.entries:
            if entry.seq <= compensation.seq:
                continue
            if entry.kind == "compensation_started":
                return
            if entry.kind == "attempt_started" and entry.side == "undo":
                for other in left:
                    other_step = other.partition("[")[0]
                    if other != entry.part and entry.step in needs(other_step):
                        self.violated("I10", f"{entry} undoes a dependency of {other}, which is not undone yet")
            gone = entry.answers("compensation")
            if entry.side == "undo" and (entry.kind == "attempt_succeeded" or (entry.kind == "doubt_settled" and entry.body["happened"])):
                gone = entry.part
            if gone in left:
                if entry.kind != "question_answered" or entry.body["answer"] != "retry":
                    left.remove(gone)

    def intact(self):
        """I8: the chains are intact, and the program's own verification with replay finds no fault."""
        for problem in self.chain_problems:
            self.violated("I8", problem)
        verified = [note for note in self.notes if "verified" in note]
        if not verified or not all(note["verified"] for note in verified):
            self.violated("I8", f"`rutter journal verify --projections` said {[note['said'] for note in verified]}")

    def crowded(self):
        """I9: no server saw more concurrent calls than it may get from one process."""
        cancelled = {execution.tag for execution in self.executions.values() if execution.of("cancel_requested", "killed")}
        ends = {line["end"]: line["at"] for line in self.log if "end" in line}
        moments = collections.defaultdict(list)
        for line in self.log:
            # A call without an end was cut off, and a cancelled one is no longer awaited.
            if "call" in line and line["id"] in ends and line["arguments"].get("tag") not in cancelled:
                crowd = (line["server"], line["life"] or (line["pid"] if line["server"] != "crane" else None))
                moments[crowd] += [(line["at"], 1, line["id"]), (ends[line["id"]], -1, line["id"])]
        for (server, life), found in moments.items():
            at_once = 0
            for at, change, call in sorted(found):
                at_once += change
                if at_once > self.limits[server]:
                    self.violated("I9", f"{server} saw {at_once} calls at once at {at:.3f} ({life}, {call}), allowed are {self.limits[server]}")
                    break

    def settled(self):
        """I13: every execution has ended, or has an open question."""
        final = {note["final"]: note for note in self.notes if "final" in note}
        for name, execution in self.executions.items():
            note = final.get(name)
            if note is None:
                self.violated("I13", f"{name} is in the journal and was not listed at the end")
                continue
            waits = note["status"] == "paused" or (note["status"] in ("waiting", "replanning") and note["questions"] > 0)
            if note["status"] not in ENDED and not waits:
                self.violated("I13", f"{name} is {note['status']} with {note['questions']} questions, although nothing is killed any more")
            if note["status"] in ENDED and not self.has_ended_as(execution, note["status"]):
                self.violated("I13", f"{name} was listed as {note['status']} at the end, which differs from its journal")

    def worthwhile(self):
        """I14: half of the started steps succeeded, so that this proves something."""
        begun = {(name, start.part) for name, one in self.executions.items() for start in one.starts if start.side in FORWARD}
        done = {(name, entry.part) for name, one in self.executions.items() for entry in one.entries if entry.is_success()}
        if not begun or len(done & begun) * 2 < len(begun):
            self.violated("I14", f"{len(done)} of {len(begun)} steps that began succeeded: this proves too little")
        self.begun, self.done = len(begun), len(done)

    def prepare(self):
        self.seen = self.calls()
        self.heard, self.effects = collections.defaultdict(list), collections.defaultdict(list)
        for line in self.log:
            if "effect" in line or "seen" in line:
                self.heard[self.who(line)].append(line)
            if "effect" in line:
                self.effects[self.who(line)].append(line)

    def counted(self):
        kinds = collections.Counter(entry.kind for one in self.executions.values() for entry in one.entries)
        told = {
            "executions": len(self.executions), "entries": sum(kinds.values()), "steps begun": self.begun,
            "steps done": self.done, "calls": sum(map(len, self.seen.values())), "effects": sum(map(len, self.effects.values())),
            "effects twice": sum(1 for effects in self.effects.values() if len(effects) > 1),
            "lives": sum(1 for note in self.notes if "life" in note),
            "acknowledged": sum(1 for note in self.notes if "acknowledged" in note),
        }
        for name, kind in (("lost", "attempt_lost"), ("doubts settled", "doubt_settled"), ("approvals", "approval_granted"),
                           ("pauses", "paused"), ("cancels", "cancel_requested"), ("undoings", "compensation_started")):
            told[name] = kinds[kind]
        for note in self.notes:
            if "final" in note:
                name = f"end {note['status']}"
                told[name] = told.get(name, 0) + 1
        return told


def main():
    found = 0
    for directory in sys.argv[1:]:
        case = Case(pathlib.Path(directory))
        case.prepare()
        case.check()
        for violation in case.violations:
            print(json.dumps(violation))
        print(json.dumps({"counted": case.counted()}))
        found += len(case.violations)
    sys.exit(1 if found else 0)


main()
