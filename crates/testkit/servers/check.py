#!/usr/bin/env python3
"""Checks the promises against three independent accounts: the harness's notes, the journal and the tools' log.

Written from docs/journal-format.md and the list of invariants, without any code of the program. Prints one JSON object per
violation of each directory given, then its counts; the exit code is 1 if there was a violation. Only the standard
library is used.
"""
import collections
import json
import pathlib
import sys

from accounts import FORWARD, Accounts

ENDED = {"completed", "partial", "failed", "cancelled", "compensated"}
# The clock of the program and that of the tools are read at different moments, and one of them in whole milliseconds.
CLOCKS_APART_MS = 50


class Case(Accounts):
    def __init__(self, directory):
        super().__init__(directory)
        self.violations = []

    def violated(self, invariant, evidence):
        self.violations.append({"invariant": invariant, "evidence": evidence})

    def check(self):
        self.acknowledged()
        self.intended()
        self.respected()
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
        for note in self.notes:
            if "broken" in note:
                self.violated("process", f"{note['life']} ended with {note['code']}: {note['broken']}")

    def acknowledged(self):
        """I1: what was acknowledged is in the journal; what was refused is not."""
        for tag, executions in self.by_tag.items():
            if len(executions) > 1:
                self.violated("I1", f"one key began {len(executions)} executions: {[one.id for one in executions]} ({tag})")
        reasons = {(name, mark) for name, execution in self.executions.items() for entry in execution.entries for mark in entry.marks}
        for note in self.notes:
            if "started" in note:
                execution = self.executions.get(note["started"])
                if execution is None or execution.tag != note["tag"]:
                    self.violated("I1", f"{note['started']} was started for {note['tag']} and is not in the journal")
                elif note["code"] == 0 and not self.has_ended_as(execution, "completed"):
                    self.violated("I1", f"{note['started']} was reported as completed and is not")
            if "acknowledged" in note:
                told = note["acknowledged"]
                if (told["execution"], told["reason"]) not in reasons:
                    self.violated("I1", f"{told['what']} of {told['execution']} was acknowledged ({told['reason']}) and is not in the journal")
            if "refused" in note:
                told = note["refused"]
                if (told["execution"], told["reason"]) in reasons:
                    self.violated("I1", f"{told['what']} of {told['execution']} was refused ({note['code']}) and is in the journal")
            if "recorded" in note:
                self.recorded(note["recorded"])
            if "concluded" in note:
                self.concluded(note)

    def recorded(self, told):
        """I1: what an agent recorded about a call, in its words; a beginning has no words, only a time."""
        execution = self.executions.get(told["execution"])
        step = told["part"].partition("[")[0]

        def is_it(entry):
            if told["status"] != "started":
                return told["reason"] in entry.marks
            is_about = step == entry.step or (entry.kind == "action_recorded" and step in entry.body["description"])
            is_then = told["since"] - CLOCKS_APART_MS <= entry.at <= told["at"] + CLOCKS_APART_MS
            return is_about and is_then and (entry.is_agents or entry.kind in ("deviation_found", "action_recorded"))

        if not any(is_it(entry) for entry in execution.entries if execution):
            self.violated("I1", f"{told['status']} of {told['part']} of {told['execution']} was recorded ({told['reason']}) and is not in the journal")

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
        for (tag, part, side), calls in self.seen.items():
            starts = [start for execution in self.by_tag.get(tag, []) for start in execution.starts
                      if (start.part, start.side) == (part, side)]
            # A new plan may have changed the parameters.
            places = collections.Counter()
            for call in sorted(calls, key=lambda call: call["at"]):
                tool = f"{call['server']}.{call['call']}"
                place = places[tool, str(call["arguments"])]
                places[tool, str(call["arguments"])] += 1
                before = [start for start in starts if start.at <= call["at"] * 1000 + CLOCKS_APART_MS
                          and start.body["tool"] == tool and start.payload("parameters") == call["arguments"]]
                if len(before) <= place:
                    self.violated("I2", f"call {place + 1} of {tool} for {tag} {part} {side} at {call['at']:.3f} was seen, "
                                        f"and {len(before)} attempts were recorded before it")

    def repeated(self, execution):
        """I3: a call that may happen once is sent again only with a recorded permission."""
        attempts = collections.defaultdict(list)
        for start in execution.attempts:
            attempts[start.part, start.side].append(start)
        for (part, side), starts in attempts.items():
            self.probed(execution, part, side)
            if starts[0].body["tool"] not in self.once:
                continue
            for first, again in zip(starts, starts[1:]):
                # What an agent repeats is its own affair.
                if not again.is_agents and not any(self.permits(entry, first) for entry in execution.between(first, again)):
                    self.violated("I3", f"{again} repeats a call that may have happened")
            starts = [start for start in starts if not start.is_agents]
            seen = len(self.seen.get((execution.tag, part, side), []))
            if seen > len(starts):
                self.violated("I3", f"{execution.id}: {part} {side} was called {seen} times, {len(starts)} were permitted")

    def respected(self):
        """I3: the program calls nothing that an agent said it began or did, unless something on record permits it."""
        for told in (note["recorded"] for note in self.notes if "recorded" in note):
            execution, part = self.executions.get(told["execution"]), told["part"]
            if execution is None or told["status"] not in ("started", "completed"):
                continue
            for call in self.seen.get((told["tag"], part, "do"), []):
                at = call["at"] * 1000 + CLOCKS_APART_MS
                starts = [start for start in execution.starts if (start.part, start.side) == (part, "do") and start.at <= at]
                # An attempt of the program may have been on its way before.
                is_before = not starts or starts[-1].at <= told["at"]
                if is_before or f"{call['server']}.{call['call']}" not in self.once:
                    continue
                since = [entry for entry in execution.entries if told["since"] - CLOCKS_APART_MS <= entry.at <= at]
                if not any(self.allows(entry, part, "do") for entry in since):
                    self.violated("I3", f"{part} of {execution.id} was called at {call['at']:.3f}, although an agent had recorded it as {told['status']}")

    def probed(self, execution, part, side):
        """I3: a probe that finds nothing counts only when the doubt is old enough; a second effect that is known is reported."""
        mine = [entry for entry in execution.entries if (entry.part, entry.side) == (part, side)]
        doubted = None
        for entry in mine:
            if entry.kind == "attempt_lost" or (entry.kind == "attempt_failed" and entry.body["maybe"]):
                doubted = entry
            if entry.kind == "doubt_settled" and not entry.body["happened"] and entry.body["source"] == "probe":
                settle_ms = execution.settle_ms(entry)
                if doubted is not None and entry.at - doubted.at < settle_ms:
                    self.violated("I3", f"{entry} believes a probe {entry.at - doubted.at} ms after the doubt, {settle_ms} ms are needed")
            if entry.kind == "late_answer_arrived" and entry.body.get("effect") == "second":
                reported = [other for other in execution.of("deviation_found") if other.seq > entry.seq
                            and other.body["kind"] == "second_effect" and other.body["step"] == entry.step]
                if not reported:
                    self.violated("I3", f"{entry} is a second effect, and no deviation says so")

    def permits(self, entry, first):
        """Whether this permits another attempt of the same call."""
        if entry.kind == "attempt_failed" and entry.body["attempt"] != first.body["attempt"]:
            return False
        return self.allows(entry, first.part, first.side)

    @staticmethod
    def allows(entry, part, side):
        """Whether it says that the call did not happen, that its effect is gone, or that it is to be made again."""
        if entry.kind == "attempt_failed" and (entry.part, entry.side) == (part, side):
            return not entry.body["maybe"]
        if entry.kind == "doubt_settled" and (entry.part, entry.side) == (part, side) and not entry.body["happened"]:
            return True
        if side in FORWARD and entry.undoes(part):
            return True
        retried = entry.kind == "question_answered" and entry.body["answer"] == "retry"
        return retried and (entry.answers("failure") == part.partition("[")[0] or part in (entry.answers("compensation"), entry.answers("item")))

    def keys(self, execution):
        """I4: one key for all attempts of a call, and for no other call; only a probe uses the key of the call it searches for."""
        owners = {}
        for (part, side), starts in execution.by_call().items():
            keys = {start.body["key"] for start in starts}
            undone = any(entry.undoes(part) for entry in execution.entries)
            # A replan can make another call of a step that did not happen.
            calls = {json.dumps({**start.payload("parameters"), "key": None}, sort_keys=True) for start in starts}
            if len(keys) > len(calls) and not undone:
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
        closed, succeeded, numbers, over, anew = collections.Counter(), set(), collections.Counter(), None, set()
        for entry in execution.entries:
            attempt = (entry.part, entry.side, entry.body.get("attempt"))
            if entry.kind == "replanned":
                anew |= {step["id"] for step in execution.renewed_by(entry)}
                # What only reads, and was not at rest, has no effect that a new plan would have to keep.
                anew |= {start.step for start in execution.before(entry)
                         if start.kind == "attempt_started" and start.body["tool"] not in self.once | self.keyed}
            is_first = entry.kind == "attempt_started" and entry.side in FORWARD and entry.body["attempt"] == 1
            if is_first and entry.step in anew:
                reads = entry.body["tool"] not in self.once | self.keyed
                for counter in (closed, numbers):
                    for one in [one for one in counter if one[:2] == (entry.part, entry.side)]:
                        del counter[one]
                succeeded -= {entry.part} if reads else set()
            if entry.kind in ("attempt_succeeded", "attempt_failed", "attempt_lost"):
                closed[attempt] += 1
                if closed[attempt] > 1:
                    self.violated("I5", f"{entry} ends an attempt for the second time")
            if entry.kind == "attempt_started":
                numbers[entry.part, entry.side] += 1
                if numbers[entry.part, entry.side] != entry.body["attempt"] and entry.side != "probe":
                    self.violated("I5", f"{entry} is attempt {entry.body['attempt']} after {numbers[entry.part, entry.side] - 1}")
                    numbers[entry.part, entry.side] = entry.body["attempt"]
                if entry.side in FORWARD and entry.part in succeeded:
                    self.violated("I5", f"{entry} starts what had succeeded")
                if over is not None:
                    self.violated("I5", f"{entry} comes after the end in entry {over.seq}")
            if entry.is_success():
                if entry.part in succeeded:
                    self.violated("I5", f"{entry} is a second success")
                succeeded.add(entry.part)
            if entry.undoes(entry.part):
                succeeded.discard(entry.part)
            if entry.kind == "execution_ended":
                if over is not None:
                    self.violated("I5", f"{entry} ends what ended in entry {over.seq}")
                over = entry
            if entry.kind in ("compensation_started", "reopened"):
                over = None

    def stopped(self, execution):
        """I6: the program starts nothing after a cancel, during a pause, or while an agent drives."""
        cancelled = paused = None
        driver = execution.driver
        for entry in execution.entries:
            if entry.kind in ("cancel_requested", "killed"):
                cancelled = entry
            if entry.kind == "reopened":
                cancelled = None
            if entry.kind == "handed_over":
                driver = entry.body["to"]
            if entry.kind == "paused":
                paused = entry
            if entry.kind == "resumed" or (entry.kind == "compensation_started" and paused is None):
                paused = None
            if entry.kind != "attempt_started" or entry.is_agents:
                continue
            if driver == "agent" and entry.side != "probe":
                self.violated("I6", f"{entry} starts while an agent drives")
            if cancelled is not None and (entry.side in FORWARD or (cancelled.kind == "killed" and entry.side != "undo")):
                self.violated("I6", f"{entry} starts after {cancelled}")
            if paused is not None:
                self.violated("I6", f"{entry} starts after {paused}")

    def order(self, execution):
        """I7: a step starts after its dependencies in the plan of that time have settled."""
        for entry in execution.unknown:
            self.violated("I7", f"{entry} follows a plan the harness never sent")
        if execution.revisions[0][1] is None:
            return self.violated("I7", f"{execution.id} executes a plan the harness never wrote ({execution.tag})")
        begun = set()
        for entry in execution.entries:
            if entry.kind == "replanned":
                # Steps that go on keep their attempts; the others begin under the new plan.
                begun = {step for step in begun if not self.is_at_rest(step, execution.before(entry))}
            is_start = entry.kind == "fan_out_opened" or (entry.kind == "attempt_started" and entry.side in FORWARD)
            if not is_start or entry.step in begun:
                continue
            begun.add(entry.step)
            for need in execution.step_at(entry.step, entry.seq).get("depends_on", []) if not entry.is_agents else []:
                if not self.is_at_rest(need, execution.before(entry)):
                    self.violated("I7", f"{entry} starts before {need} has settled")

    @staticmethod
    def is_at_rest(step, entries):
        left, under_way, rested = 1, set(), False
        for entry in entries:
            body = entry.body
            if entry.kind == "reopened":
                rested = rested and step not in body["steps"] + body.get("held", [])
            elif step in body.get("steps", []) + body.get("skipped", []) + body.get("cancelled", []):
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
            if entry.is_success() or entry.is_late_success():
                under_way.discard(entry.part)
                left -= 1
        return not under_way and (rested or left <= 0)

    def undone(self, execution):
        """I10: effects are undone in reverse order, each once."""
        ends, gone = {}, {}
        for entry in execution.entries:
            if entry.is_success():
                ends[entry.part] = entry.seq
            if entry.kind == "attempt_started" and entry.side == "undo" and not entry.is_agents and entry.part in gone:
                self.violated("I10", f"{entry} undoes what was undone by hand in entry {gone[entry.part].seq}")
            if entry.kind == "compensation_recorded":
                gone[entry.part] = entry
            if entry.is_success():
                gone.pop(entry.part, None)
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
            redone = sum(1 for start in execution.attempts if start.part == part and start.side in FORWARD and any(
                entry.undoes(part) and entry.seq < start.seq for entry in execution.entries))
            if len(effects) > permitted + redone:
                self.violated("I10", f"{execution.id}: {part} was undone {len(effects)} times")

    def undone_in_order(self, execution, compensation):
        above = {}

        def needs(step):
            if step not in above:
                direct = execution.step_at(step, compensation.seq).get("depends_on", [])
                above[step] = set(direct).union(*(needs(need) for need in direct))
            return above[step]

        left = list(compensation.body["parts"])
        for entry in execution.entries:
            if entry.seq <= compensation.seq:
                continue
            if entry.kind == "compensation_started":
                return
            if entry.kind == "attempt_started" and entry.side == "undo" and not entry.is_agents:
                for other in left:
                    other_step = other.partition("[")[0]
                    if other != entry.part and entry.step in needs(other_step):
                        self.violated("I10", f"{entry} undoes a dependency of {other}, which is not undone yet")
            gone = entry.part if entry.undoes(entry.part) else entry.answers("compensation")
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
            # A call without an end was cut off; a cancelled one is no longer awaited, and a late one may not be.
            awaited = line["arguments"].get("tag") not in cancelled and not str(line.get("fault")).startswith("late:") if "call" in line else False
            awaited = awaited and not str(line["life"]).startswith("agent-")
            if awaited and line["id"] in ends:
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

    def counted(self):
        kinds = collections.Counter(entry.kind for one in self.executions.values() for entry in one.entries)
        begun = {(name, start.part) for name, one in self.executions.items() for start in one.attempts if start.side in FORWARD}
        done = {(name, entry.part) for name, one in self.executions.items() for entry in one.entries if entry.is_success()}
        told = {
            "executions": len(self.executions), "entries": sum(kinds.values()), "steps begun": len(begun),
            "steps done": len(done & begun), "calls": sum(map(len, self.seen.values())), "effects": sum(map(len, self.effects.values())),
            "effects twice": sum(1 for effects in self.effects.values() if len(effects) > 1),
            "lives": sum(1 for note in self.notes if "life" in note),
            "acknowledged": sum(1 for note in self.notes if "acknowledged" in note),
            "agent executions": sum(1 for one in self.executions.values() if one.driver == "agent" or one.of("handed_over")),
            "agent calls": self.agent_calls,
            "agent records": sum(1 for note in self.notes if "recorded" in note),
        }
        handed = [entry for one in self.executions.values() for entry in one.of("handed_over")]
        told["handed to agents"] = sum(1 for entry in handed if entry.body["to"] == "agent")
        told["handed to the program"] = sum(1 for entry in handed if entry.body["to"] == "server")
        told["silent agents replaced"] = sum(1 for entry in handed if entry.body["to"] == "server" and entry.actor == "rutter")
        for name, kind in (("lost", "attempt_lost"), ("doubts settled", "doubt_settled"), ("approvals", "approval_granted"),
                           ("late answers", "late_answer_arrived"), ("probes asked again", "probe_postponed"),
                           ("deviations", "deviation_found"), ("replans", "replanned"), ("pauses", "paused"), ("cancels", "cancel_requested"), ("undoings", "compensation_started")):
            told[name] = kinds[kind]
        for fault in ("late", "freeze", "answer_twice"):
            told[f"faults {fault}"] = sum(1 for line in self.log if str(line.get("fault")).partition(":")[0] == fault)
        told["unreachable"] = sum(1 for note in self.notes if "unreachable" in note)
        for note in self.notes:
            if "final" in note:
                name = f"end {note['status']}"
                told[name] = told.get(name, 0) + 1
        return told


def main():
    found = 0
    for directory in sys.argv[1:]:
        case = Case(pathlib.Path(directory))
        case.check()
        for violation in case.violations:
            print(json.dumps(violation))
        print(json.dumps({"counted": case.counted()}))
        found += len(case.violations)
    sys.exit(1 if found else 0)


main()
