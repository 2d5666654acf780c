"""An MCP server over HTTP for tests: http_server.py MODE FOLDER, with MODE modern, legacy, locked or forbidden.

Writes its port to FOLDER/port, and what it does to other files there, as server.py does.
Only the standard library is used.
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODE, FOLDER = sys.argv[1], sys.argv[2]
sessions = {}
replies = {}


def note(name, text):
    with open(os.path.join(FOLDER, name), "a") as file:
        file.write(text + "\n")


def text(words):
    return {"resultType": "complete", "content": [{"type": "text", "text": words}]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def result(self, identity, result, **headers):
        message = {"jsonrpc": "2.0", "id": identity, "result": result}
        self.answer(200, json.dumps(message).encode(), **headers)

    def stream(self):
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()

    def event(self, message):
        self.wfile.write(b"data: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n")
        self.wfile.flush()

    def do_GET(self):
        self.answer(405)

    def do_DELETE(self):
        note("deleted", self.headers.get("Mcp-Session-Id", ""))
        self.answer(200)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, identity, params = message.get("method"), message.get("id"), message.get("params") or {}
        if MODE in ("locked", "forbidden"):
            note("methods", method)
            return self.answer(401 if MODE == "locked" else 403)
        if MODE == "modern" and method == "server/discover":
            return self.result(identity, {
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                "capabilities": {"tools": {}}})
        if MODE == "legacy" and method == "initialize":
            name = "session-%d" % (len(sessions) + 1)
            sessions[name] = True
            return self.result(identity, {
                "protocolVersion": "2025-11-25", "serverInfo": {"name": "test", "version": "1"},
                "capabilities": {"tools": {}}}, Mcp_Session_Id=name)
        if MODE == "legacy" and not sessions.get(self.headers.get("Mcp-Session-Id")):
            return self.answer(404 if "Mcp-Session-Id" in self.headers else 400)
        if method is None:
            replies[identity] = message["result"]
            return self.answer(202)
        if identity is None:
            note("notified", method)
            return self.answer(202)
        if method == "tools/list":
            region = {"type": "string", "x-mcp-header": "Region"}
            tools = [{"name": "work", "inputSchema": {"type": "object"}},
                     {"name": "route", "inputSchema": {"type": "object", "properties": {"region": region}}}]
            return self.result(identity, {"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"})
        self.call(identity, params["name"], params.get("arguments") or {})

    def call(self, identity, name, arguments):
        if name == "work":
            note("effects", "work")
            note("authorization", self.headers.get("Authorization", ""))
            self.result(identity, text("worked"))
        elif name == "route" and self.headers.get("Mcp-Param-Region") != arguments["region"]:
            error = {"code": -32020, "message": "Mcp-Param-Region is missing"}
            self.answer(400, json.dumps({"jsonrpc": "2.0", "id": identity, "error": error}).encode())
        elif name == "route":
            self.result(identity, text("routed"))
        elif name == "status":
            self.answer(arguments["status"], b"not now", "text/plain", **arguments.get("headers", {}))
        elif name == "cut":
            note("effects", "cut")
            self.stream()
            self.wfile.write(b": soon\n\n")
        elif name == "wait":
            self.stream()
            note("waiting", str(identity))
            try:
                while True:
                    self.wfile.write(b": still here\n\n")
                    self.wfile.flush()
                    time.sleep(0.02)
            except OSError:
                note("closed", str(identity))
        elif name == "huge":
            note("effects", "huge")
            self.result(identity, text("y" * 20_000_000))
        elif name == "huge-stream":
            note("effects", "huge")
            self.stream()
            self.event({"id": identity, "result": text("y" * 20_000_000)})
        elif name == "forget":
            sessions.clear()
            sessions["old"] = False
            self.result(identity, text("forgotten"))
        elif name == "ask":
            self.stream()
            question = "q%s" % identity
            note("asking", question)
            while not os.path.exists(os.path.join(FOLDER, "go")):
                time.sleep(0.01)
            schema = {"type": "object", "properties": {
                "who": {"type": "string"}, "how": {"type": "string", "default": "well"}}}
            self.event({"id": question, "method": "elicitation/create",
                        "params": {"message": arguments["who"], "requestedSchema": schema}})
            while question not in replies:
                time.sleep(0.01)
            self.event({"id": identity, "result": {"content": [], "structuredContent": replies[question]}})


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
with open(os.path.join(FOLDER, "port.new"), "w") as file:
    file.write(str(server.server_port))
os.rename(os.path.join(FOLDER, "port.new"), os.path.join(FOLDER, "port"))
server.serve_forever()
