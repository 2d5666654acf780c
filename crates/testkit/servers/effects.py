#!/usr/bin/env python3
"""Tools with real effects, for tests: an MCP server on stdio, an HTTP server, or a command.

Every effect is one line in a log of its own, written before the response, so that a test can count the actual effects
whatever the engine believes. The tools and their faults are read from a JSON file:

    {"tools": {"charge": {"kind": "keyed", "gives": {"status": "paid"}, "fails": "503"}, ...},
     "faults": {"charge": ["commit_then_drop", null]}}

Kinds: "once" (each call has an effect), "keyed" (one effect per key), "idempotent" (one effect per arguments),
"versioned" (one record per id; refused unless the version is the current one), "find" (looks up an effect by key, no
effect), "look" (returns "after" once there is an effect of the tool "of", "before" until then), "read" (no effect).
Faults are taken one per call, in order; the last one stays unless it is null. The state that tools need is the log
itself, so it survives any restart. With "ends": true the end of every call is logged too, before its response is sent. With
"run": 3 every line of a process that starts then says so. Only the standard library is used.

The result of a tool is made up from its "output" schema if it has one, otherwise it is an id; "gives" adds to that, and
"{n}" in its texts is the number of the effect. "refuses": {"id": ["7"]} is a permanent error for these arguments.

The fault "commit_then_kill" kills the process whose id is in the file "victim" with SIGKILL when the effect is durable,
and sends no response; "kill_at_effect": 7 does so at the seventh effect of all. "hang_until_cancelled" waits to be
cancelled, and logs how it was cancelled. "late:2.5" takes effect and responds only after so many seconds, awaited or not;
"answer_twice" sends the response of an MCP call a second time; after "freeze" an MCP server answers nothing any more, no
ping either.
"""
import argparse
import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import sys
import threading
import time


class Refused(Exception):
    """The tool refuses, without an effect."""


def delay(fault):
    """Waits as long as a late response does."""
    if isinstance(fault, str) and fault.startswith("late:"):
        time.sleep(float(fault.partition(":")[2]))


class World:
    def __init__(self, args):
        self.path, self.log_path, self.server = args.world, args.log, args.server
        self.lock = threading.Lock()
        self.known, self.read_to = [], 0
        run = self.settings().get("run")
        self.run = {} if run is None else {"run": run}

    def settings(self):
        with open(self.path, encoding="utf-8") as file:
            return json.load(file)

    @contextlib.contextmanager
    def alone(self):
        """Excludes other effects meanwhile, in this process and others."""
        with self.lock, open(self.log_path + ".lock", "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def effects(self):
        """All lines so far; only new ones are read."""
        try:
            with open(self.log_path, "rb") as file:
                file.seek(self.read_to)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self.known.append(json.loads(line))
                    self.read_to += len(line)
        except FileNotFoundError:
            pass
        return self.known

    def note(self, what):
        """Appends one line; an effect is durable before its response."""
        line = json.dumps({**what, **self.run, "server": self.server, "at": time.time(), "pid": os.getpid()}) + "\n"
        descriptor = os.open(self.log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode())
            if "effect" in what:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def begin(self, tool, arguments, fault, life=None):
        """Logs a call, and returns its id."""
        call = f"{os.getpid()}-{time.monotonic_ns()}"
        self.note({"call": tool, "arguments": arguments, "fault": fault, "id": call, "life": life})
        return call

    def end(self, call):
        if self.settings().get("ends"):
            self.note({"end": call})

    def fault(self, tool):
        """The next fault of a tool; how many were taken is counted in a file beside the log."""
        faults = self.settings().get("faults", {}).get(f"{self.server}.{tool}", [])
        if not faults:
            return None
        count_path = f"{self.log_path}.{self.server}.{tool}.count"
        with open(count_path, "a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            taken = int(file.read() or 0)
            file.seek(0)
            file.truncate()
            file.write(str(taken + 1))
        return faults[min(taken, len(faults) - 1)]

    def perform(self, tool, arguments, key, life=None):
        """Takes effect, and returns the result. `life` says which client called, if the server is told."""
        settings = self.settings()
        spec = settings["tools"][f"{self.server}.{tool}"]
        kind = spec.get("kind", "once")
        key = arguments.get("key") or arguments.get("idempotency_key") or key
        for name, values in spec.get("refuses", {}).items():
            if arguments.get(name) in values:
                raise Refused(f"{tool} does not take {arguments[name]}")
        with self.alone():
            caller = {"life": life} if life else {}
            seen = {"seen": tool, "arguments": arguments, "key": key, **caller}
            if kind == "read":
                self.note(seen)
                return self.answer_of(spec, tool, 0)
            done = [effect for effect in self.effects() if "effect" in effect]
            if kind == "find":
                self.note(seen)
                found = [effect for effect in done if effect["effect"] == spec["of"] and effect["key"] == key]
                return {"found": bool(found), **(found[0]["result"] if found else {})}
            if kind == "look":
                self.note(seen)
                return spec["after" if any(effect["effect"] == spec["of"] for effect in done) else "before"]
            mine = [effect for effect in done if effect["effect"] == tool and effect["server"] == self.server]
            if kind in ("keyed", "idempotent"):
                same = {"keyed": ("key", key), "idempotent": ("arguments", arguments)}[kind]
                known = [effect for effect in mine if effect[same[0]] == same[1]]
                if known:
                    self.note({**seen, "again": True})
                    return known[0]["result"]
            number = len(done) + 1
            result = self.answer_of(spec, tool, number)
            if kind == "versioned":
                result.update(changed(mine, arguments))
            self.note({"effect": tool, "arguments": arguments, "key": key, "result": result, **caller})
            if settings.get("kill_at_effect") == number:
                self.kill_victim()
        time.sleep(spec.get("takes_ms", 0) / 1000)
        return result

    def answer_of(self, spec, tool, number):
        made_up = example(spec["output"], f"{tool}-{number}") if "output" in spec else {}
        if "output" not in spec and spec.get("kind") != "read":
            made_up = {"id": f"{tool}-{number}"}
        given = json.loads(json.dumps(spec.get("gives", {})).replace("{n}", str(number)))
        return {**made_up, **given}

    def kill_victim(self):
        """Kills the process under test, as if the power had failed at this moment."""
        victim = self.settings()["victim"]
        with open(victim, encoding="utf-8") as file:
            process = int(file.read())
        try:
            os.kill(process, signal.SIGKILL)
        except PermissionError:
            # A program in a sandbox may not: the test does it instead.
            with open(victim + ".kill", "w", encoding="utf-8"):
                pass
            time.sleep(60)
        except ProcessLookupError:
            pass

    def listed(self):
        tools = []
        for name, spec in sorted(self.settings()["tools"].items()):
            server, _, tool = name.partition(".")
            if server == self.server:
                tools.append({
                    "name": tool,
                    "description": spec.get("description", f"{tool}, for tests"),
                    "inputSchema": spec.get("input", {"type": "object"}),
                    **({"outputSchema": spec["output"]} if "output" in spec else {}),
                    "annotations": spec.get("annotations", {"readOnlyHint": spec.get("kind") in ("read", "find", "look")}),
                })
        return tools


def changed(updates, arguments):
    """The next version of a record, if the writer has seen the current one."""
    mine = [update for update in updates if update["arguments"]["id"] == arguments["id"]]
    version = mine[-1]["result"]["version"] if mine else 1
    if arguments["version"] != version:
        raise Refused(f"{arguments['id']} is at version {version}, not {arguments['version']}")
    before = mine[-1]["arguments"]["fields"] if mine else {"original": arguments["id"]}
    return {"id": arguments["id"], "version": version + 1, "before": before}


def example(schema, name):
    """A value that fits a schema."""
    kind = schema.get("type")
    if kind == "object":
        return {field: example(schema["properties"][field], name) for field in schema.get("required", [])}
    if "enum" in schema:
        return schema["enum"][0]
    return {"array": [], "integer": 1, "number": 1.5, "boolean": True}.get(kind, name)


def stdio(world):
    write_lock = threading.Lock()
    cancelled = {}
    frozen = threading.Event()

    def send(message):
        with write_lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def call(message):
        params = message["params"]
        tool, arguments = params["name"], params.get("arguments") or {}
        fault = world.fault(tool)
        begun = world.begin(tool, arguments, fault)
        if fault == "hang_before":
            time.sleep(3600)
        if fault == "freeze":
            frozen.set()
            time.sleep(3600)
        if fault == "die_before":
            os._exit(1)
        if fault == "fail":
            world.end(begun)
            return send({"id": message["id"], "result": {"isError": True, "content": [{"type": "text", "text": f"{tool} said no"}]}})
        if fault == "hang_until_cancelled":
            cancelled[message["id"]].wait(3600)
            return world.note({"cancelled": tool, "arguments": arguments})
        if isinstance(fault, int):
            world.end(begun)
            return send({"id": message["id"], "error": {"code": fault, "message": f"{tool} was refused"}})
        delay(fault)
        try:
            result = world.perform(tool, arguments, None)
        except Refused as refused:
            return send({"id": message["id"], "result": {"isError": True, "content": [{"type": "text", "text": str(refused)}]}})
        if fault == "commit_then_kill":
            world.kill_victim()
        if fault in ("commit_then_drop", "commit_then_kill"):
            os._exit(1)
        if fault == "commit_then_hang":
            time.sleep(3600)
        world.end(begun)
        for _ in range(2 if fault == "answer_twice" else 1):
            send({"id": message["id"], "result": {
                "content": [{"type": "text", "text": json.dumps(result)}], "structuredContent": result, "isError": False}})

    for line in sys.stdin:
        if frozen.is_set():
            time.sleep(3600)
        message = json.loads(line)
        method = message.get("method")
        if method == "initialize":
            send({"id": message["id"], "result": {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": world.server, "version": "1"}}})
        elif method == "tools/list":
            send({"id": message["id"], "result": {"tools": world.listed()}})
        elif method == "notifications/cancelled":
            cancelled.get(message["params"].get("requestId"), threading.Event()).set()
        elif method == "tools/call":
            cancelled[message["id"]] = threading.Event()
            threading.Thread(target=call, args=(message,), daemon=True).start()
        elif method == "ping":
            send({"id": message["id"], "result": {}})
        elif "id" in message:
            send({"id": message["id"], "error": {"code": -32601, "message": f"unknown method {method}"}})


def serve_http(world, port_file, port):
    # Needed here only, and the slowest to load by far.
    import http.server

    class Tools(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            tool = self.path.strip("/").split("/")[-1]
            arguments = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
            fault = world.fault(tool)
            begun = world.begin(tool, arguments, fault, self.headers.get("X-Life"))
            if fault == "hang_before":
                time.sleep(3600)
            if fault == "drop_before":
                return self.drop()
            if fault == "hang_until_cancelled":
                select.select([self.connection], [], [], 3600)
                return world.note({"closed": tool, "arguments": arguments})
            if isinstance(fault, int):
                world.end(begun)
                return self.answer(fault, {"error": f"{tool} was refused"})
            if isinstance(fault, str) and fault.startswith("retry_after:"):
                _, status, seconds = fault.split(":")
                world.end(begun)
                return self.answer(int(status), {"error": "later"}, {"Retry-After": seconds})
            delay(fault)
            try:
                result = world.perform(tool, arguments, self.headers.get("Idempotency-Key"), self.headers.get("X-Life"))
            except Refused as refused:
                return self.answer(409, {"error": str(refused)})
            if fault == "commit_then_kill":
                world.kill_victim()
            if fault in ("commit_then_drop", "commit_then_kill"):
                return self.drop()
            if fault == "commit_then_hang":
                time.sleep(3600)
            world.end(begun)
            self.answer(200, result)

        def answer(self, status, body, headers=None):
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def drop(self):
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Tools)
    server.daemon_threads = True
    with open(port_file + ".part", "w", encoding="utf-8") as file:
        file.write(str(server.server_address[1]))
    os.rename(port_file + ".part", port_file)
    server.serve_forever()


def command(world, tool):
    arguments = json.loads(sys.stdin.read() or "{}")
    fault = world.fault(tool)
    begun = world.begin(tool, arguments, fault)
    if fault == "hang_before":
        time.sleep(3600)
    if fault == "hang_until_cancelled":
        signal.signal(signal.SIGTERM, lambda *_: (world.note({"terminated": tool, "arguments": arguments}), os._exit(143)))
        time.sleep(3600)
    if isinstance(fault, int):
        world.end(begun)
        sys.exit(fault)
    delay(fault)
    try:
        result = world.perform(tool, arguments, os.environ.get("RUTTER_KEY"))
    except Refused as refused:
        sys.exit(f"{refused}")
    if fault == "commit_then_kill":
        world.kill_victim()
    if fault == "commit_then_hang":
        time.sleep(3600)
    if fault in ("commit_then_drop", "commit_then_kill"):
        os.kill(os.getpid(), 9)
    world.end(begun)
    print(json.dumps(result))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["stdio", "http", "command"])
    parser.add_argument("--server", required=True, help="the name before the dot")
    parser.add_argument("--world", default=os.environ.get("EFFECTS_WORLD"), help="the tools and their faults")
    parser.add_argument("--log", default=os.environ.get("EFFECTS_LOG"), help="the log of effects")
    parser.add_argument("--tool", help="the tool a command is")
    parser.add_argument("--port-file", help="where an HTTP server writes its port")
    parser.add_argument("--port", type=int, default=0)
    args = parser.parse_args()
    world = World(args)
    if args.mode == "stdio":
        stdio(world)
    elif args.mode == "http":
        serve_http(world, args.port_file, args.port)
    else:
        command(world, args.tool)


main()
