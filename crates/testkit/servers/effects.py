#!/usr/bin/env python3
"""Tools with real effects, for tests: an MCP server on stdio, an HTTP server, or a command.

Every effect is one line in a log of its own, written before the answer, so that a test can count what really
happened whatever the engine believes. Which tools there are and how they misbehave is read from a JSON file:

    {"tools": {"charge": {"kind": "keyed", "gives": {"status": "paid"}, "fails": "503"}, ...},
     "faults": {"charge": ["commit_then_drop", null]}}

Kinds: "once" (each call has an effect), "keyed" (one effect per key), "find" (looks up an effect by key, no effect),
"read" (no effect). Faults are taken one per call, in order; the last one stays unless it is null. The state that keyed
tools need is the log itself, so it survives any restart. With "ends": true the end of every call is logged too, before
its answer leaves. Only the standard library is used.
"""
import argparse
import contextlib
import fcntl
import json
import os
import sys
import threading
import time


class World:
    def __init__(self, args):
        self.path, self.log_path, self.server = args.world, args.log, args.server
        self.lock = threading.Lock()

    def settings(self):
        with open(self.path, encoding="utf-8") as file:
            return json.load(file)

    def effects(self):
        try:
            with open(self.log_path, encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def note(self, what):
        """Appends one whole line, durable before anybody hears of it."""
        line = json.dumps({**what, "server": self.server, "at": time.time(), "pid": os.getpid()}) + "\n"
        descriptor = os.open(self.log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def begin(self, tool, arguments, fault, life=None):
        """Notes a call, and says by what it is known."""
        call = f"{os.getpid()}-{time.monotonic_ns()}"
        self.note({"call": tool, "arguments": arguments, "fault": fault, "id": call, "life": life})
        return call

    def end(self, call):
        if self.settings().get("ends"):
            self.note({"end": call})

    @contextlib.contextmanager
    def alone(self):
        """One effect at a time, whichever process it is in: a server whose client was killed may still be at work."""
        with self.lock, open(f"{self.log_path}.lock", "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

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

    def perform(self, tool, arguments, key):
        """Takes effect, and returns what came of it."""
        spec = self.settings()["tools"][f"{self.server}.{tool}"]
        kind = spec.get("kind", "once")
        key = arguments.get("key") or arguments.get("idempotency_key") or key
        with self.alone():
            if kind == "read":
                self.note({"seen": tool, "arguments": arguments, "key": key})
                return spec.get("gives", {})
            if kind == "find":
                self.note({"seen": tool, "arguments": arguments, "key": key})
                found = [effect for effect in self.effects() if effect.get("effect") == spec["of"] and effect["key"] == key]
                return {"found": bool(found), **(found[0]["result"] if found else {})}
            if kind == "keyed":
                known = [effect for effect in self.effects() if effect.get("effect") == tool and effect["key"] == key]
                if known:
                    self.note({"seen": tool, "arguments": arguments, "key": key, "again": True})
                    return known[0]["result"]
            number = sum(1 for effect in self.effects() if "effect" in effect) + 1
            result = {"id": f"{tool}-{number}", **spec.get("gives", {})}
            self.note({"effect": tool, "arguments": arguments, "key": key, "result": result})
        time.sleep(spec.get("takes_ms", 0) / 1000)
        return result

    def listed(self):
        tools = []
        for name, spec in sorted(self.settings()["tools"].items()):
            server, _, tool = name.partition(".")
            if server == self.server:
                tools.append({
                    "name": tool,
                    "description": spec.get("description", f"{tool}, for tests"),
                    "inputSchema": spec.get("input", {"type": "object"}),
                    "annotations": {"readOnlyHint": spec.get("kind") in ("read", "find")},
                })
        return tools


def stdio(world):
    write_lock = threading.Lock()

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
        if fault == "die_before":
            os._exit(1)
        if fault == "fail":
            world.end(begun)
            return send({"id": message["id"], "result": {"isError": True, "content": [{"type": "text", "text": f"{tool} said no"}]}})
        if isinstance(fault, int):
            world.end(begun)
            return send({"id": message["id"], "error": {"code": fault, "message": f"{tool} was refused"}})
        result = world.perform(tool, arguments, None)
        if fault == "commit_then_drop":
            os._exit(1)
        if fault == "commit_then_hang":
            time.sleep(3600)
        world.end(begun)
        send({"id": message["id"], "result": {
            "content": [{"type": "text", "text": json.dumps(result)}], "structuredContent": result, "isError": False}})

    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if method == "initialize":
            send({"id": message["id"], "result": {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": world.server, "version": "1"}}})
        elif method == "tools/list":
            send({"id": message["id"], "result": {"tools": world.listed()}})
        elif method == "tools/call":
            threading.Thread(target=call, args=(message,), daemon=True).start()
        elif method == "ping":
            send({"id": message["id"], "result": {}})
        elif "id" in message:
            send({"id": message["id"], "error": {"code": -32601, "message": f"unknown method {method}"}})


def serve_http(world, port_file, port):
    import http.server
    import socket

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
            if isinstance(fault, int):
                world.end(begun)
                return self.answer(fault, {"error": f"{tool} was refused"})
            if isinstance(fault, str) and fault.startswith("retry_after:"):
                _, status, seconds = fault.split(":")
                world.end(begun)
                return self.answer(int(status), {"error": "later"}, {"Retry-After": seconds})
            result = world.perform(tool, arguments, self.headers.get("Idempotency-Key"))
            if fault == "commit_then_drop":
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
    if isinstance(fault, int):
        world.end(begun)
        sys.exit(fault)
    result = world.perform(tool, arguments, os.environ.get("RUTTER_KEY"))
    if fault == "commit_then_hang":
        time.sleep(3600)
    if fault == "commit_then_drop":
        os.kill(os.getpid(), 9)
    world.end(begun)
    print(json.dumps(result))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["stdio", "http", "command"])
    parser.add_argument("--server", required=True, help="the name before the dot")
    parser.add_argument("--world", required=True, help="which tools there are, and their faults")
    parser.add_argument("--log", required=True, help="where effects are counted")
    parser.add_argument("--tool", help="the tool a command is")
    parser.add_argument("--port-file", help="where an HTTP server says its port")
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
