"""An MCP server for tests, honest or otherwise: server.py MODE FOLDER

Every call of `work` adds a line to FOLDER/effects, so that a test can count what really happened.
Only the standard library is used.
"""

import json
import os
import subprocess
import sys
import threading
import time

MODE, FOLDER = sys.argv[1], sys.argv[2]
MODERN = MODE.startswith("modern")
VERSION = "2026-07-28"
out = sys.stdout.buffer
lock = threading.Lock()
cancelled = {}
answers = {}
calls = 0
polls = {}
hung = threading.Event()


def write(data):
    with lock:
        out.write(data)
        out.flush()


def send(message):
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def note(name, text):
    with open(os.path.join(FOLDER, name), "a") as file:
        file.write(text + "\n")


def complete(result):
    return {"resultType": "complete", **result} if MODERN else result


def text(words, **more):
    return complete({"content": [{"type": "text", "text": words}], **more})


def tool(name, **more):
    return {"name": name, "description": "does " + name, "inputSchema": {"type": "object"}, **more}


def tools(cursor):
    page = {}
    if MODE == "malformed":
        found = [
            tool("work", surprise=1),
            {"name": "null", "inputSchema": None},
            {"inputSchema": {"type": "object"}},
            tool("work"),
            "nonsense",
            tool("wait"),
            tool("with space"),
        ]
    elif MODE == "many":
        start = int(cursor or 0)
        found = [tool("tool%04d" % number) for number in range(start, start + 100)]
        if start + 100 < 5000:
            page["nextCursor"] = str(start + 100)
    elif MODE == "endless":
        number = int(cursor or 0)
        found = [tool("tool%d" % number)]
        page["nextCursor"] = str(number + 1)
    elif MODE == "changes" and calls:
        found = [tool("work", description="does something else now")]
    elif MODE == "asks":
        found = [tool("ask")]
    else:
        found = [tool("work", annotations={"readOnlyHint": False}), tool("wait")]
    if MODERN:
        page.update(ttlMs=0, cacheScope="private")
    return complete({"tools": found, **page})


def ticket(name, status, **more):
    state = {"taskId": name, "status": status, "createdAt": "2026-01-01T00:00:00Z",
             "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": None, "pollIntervalMs": 10}
    return {**state, **more}


def elicitation(message):
    schema = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def ask(question):
    """Asks the client over the pipe and waits for its answer."""
    answers["q"] = threading.Event()
    send({"id": "q", **question})
    answers["q"].wait(30)
    return answers.get("q-result")


def call(identity, params):
    """Returns the result, or None when it has answered itself, or will not."""
    global calls
    name, arguments = params["name"], params.get("arguments") or {}
    if name == "wait":
        until = time.monotonic() + arguments.get("seconds", 30)
        cancelled[identity] = threading.Event()
        note("waiting", str(identity))
        if MODE == "deaf-to-cancel":
            time.sleep(arguments.get("seconds", 30))
            return text("done after all")
        if cancelled[identity].wait(until - time.monotonic()):
            note("cancelled", str(identity))
            if MODE == "late":
                note("effects", "late")
                return text("done before it was cancelled")
            while MODE == "later" and not os.path.exists(os.path.join(FOLDER, "answer")):
                time.sleep(0.01)
            if MODE == "later":
                return text("done before it was cancelled")
            return None
        return text("waited")
    if name == "hang":
        hung.set()
        return None
    if name == "error":
        return send({"id": identity, "error": {"code": arguments["code"], "message": "as you wish"}})
    if name == "fail":
        return text("the disk is full", isError=True)
    if name == "environment":
        return complete({"content": [], "structuredContent": {"names": sorted(os.environ), "cwd": os.getcwd()}})
    if name == "ask":
        answer = ask(elicitation("sure?"))
        return complete({"content": [], "structuredContent": answer})
    if name == "rounds":
        state, given = params.get("requestState"), params.get("inputResponses")
        count = int(state or 0)
        if count and "code" in arguments:
            return send({"id": identity, "error": {"code": arguments["code"], "message": "lost the thread"}})
        if count >= arguments["rounds"]:
            note("effects", "rounds")
            return complete({"content": [], "structuredContent": {"rounds": count, "last": given}})
        return {"resultType": "input_required", "requestState": str(count + 1),
                "inputRequests": {"sure": elicitation("round %d" % count)}}
    if name == "elsewhere":
        note("effects", "elsewhere")
        return {"resultType": "task", **ticket("ticket-" + arguments["kind"], "working")}
    if MODE == "dies-at-call":
        note("effects", "died")
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(7)
    if MODE == "dies-mid-line":
        note("effects", "died")
        write(b'{"jsonrpc": "2.0", "id": ')
        os._exit(7)
    if MODE == "long-line":
        note("effects", "long")
        write(b'{"jsonrpc": "2.0", "x": "' + b"y" * 20_000_000 + b'"}\n')
        return text("after the long line")
    note("effects", arguments.get("text", "work"))
    calls += 1
    if MODE == "changes":
        send({"method": "notifications/tools/list_changed"})
    if MODE == "modern-changes":
        meta = {"io.modelcontextprotocol/subscriptionId": answers["listen"]}
        send({"method": "notifications/tools/list_changed", "params": {"_meta": meta}})
    if MODE == "twice":
        send({"id": identity, "result": text("first")})
        send({"id": identity, "result": text("second")})
        return None
    if MODE == "wrong-id":
        send({"id": 99999, "result": text("for another request")})
    if MODE == "unreadable":
        return write(json.dumps({"id": identity, "result": text("no version")}).encode() + b"\n")
    if MODE == "progress":
        token = params["_meta"]["progressToken"]
        for step in (1, 2):
            send({"method": "notifications/progress", "params": {"progressToken": token, "progress": step, "total": 2}})
    return text("worked")


def look(identity, name):
    """The state of a task."""
    polls[name] = polls.get(name, 0) + 1
    if name == "ticket-works" or (name == "ticket-asks" and "answered" in answers):
        if polls[name] >= 3:
            return complete(ticket(name, "completed", result=text("done elsewhere")))
        return complete(ticket(name, "working"))
    if name == "ticket-asks":
        return complete(ticket(name, "input_required", inputRequests={"sure": elicitation("go on?")}))
    if name == "ticket-fails":
        return complete(ticket(name, "failed", error={"code": -32603, "message": "broke"}))
    if name == "ticket-endless":
        return complete(ticket(name, "cancelled" if "stop" in answers else "working"))
    if name == "ticket-dies" and not os.path.exists(os.path.join(FOLDER, "died")):
        note("died", "once")
        os._exit(1)
    if name == "ticket-dies":
        return complete(ticket(name, "completed", result=text("survived")))
    send({"id": identity, "error": {"code": -32602, "message": "no such ticket"}})


def answer(message):
    method, identity, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method is None:
        answers["q-result"] = message.get("result")
        answers["q"].set()
    elif method == "notifications/cancelled":
        if params["requestId"] in cancelled:
            cancelled[params["requestId"]].set()
    elif identity is None:
        pass
    elif method == "initialize" and not MODERN:
        send({"id": identity, "result": {
            "protocolVersion": "2025-11-25", "serverInfo": {"name": "test", "version": "1"},
            "capabilities": {"tools": {"listChanged": True}}}})
        if MODE == "deaf":
            time.sleep(300)
    elif method == "server/discover" and MODERN:
        send({"id": identity, "result": complete({
            "supportedVersions": [VERSION], "ttlMs": 0, "cacheScope": "private",
            "capabilities": {"tools": {"listChanged": True}, "extensions": {"io.modelcontextprotocol/tasks": {}}}})})
    elif method == "server/discover" and MODE == "exits-on-unknown":
        print("unknown request", file=sys.stderr, flush=True)
        os._exit(1)
    elif method == "server/discover" and MODE == "ignores-unknown":
        pass
    elif method == "tools/list":
        send({"id": identity, "result": tools(params.get("cursor"))})
    elif method == "tools/call":
        result = call(identity, params)
        if result is not None:
            send({"id": identity, "result": result})
    elif method == "tasks/get":
        result = look(identity, params["taskId"])
        if result is not None:
            send({"id": identity, "result": result})
    elif method == "tasks/cancel":
        answers["stop"] = True
        note("stopped", params["taskId"])
        send({"id": identity, "result": complete({})})
    elif method == "tasks/update":
        answers["answered"] = params["inputResponses"]
        send({"id": identity, "result": complete({})})
    elif method == "subscriptions/listen":
        answers["listen"] = identity
        meta = {"io.modelcontextprotocol/subscriptionId": identity}
        send({"method": "notifications/subscriptions/acknowledged",
              "params": {"_meta": meta, "notifications": {"toolsListChanged": True}}})
        note("listening", str(identity))
    else:
        send({"id": identity, "error": {"code": -32601, "message": "unknown method " + method}})


def main():
    note("starts", str(os.getpid()))
    if MODE == "dies":
        print("no licence found", file=sys.stderr, flush=True)
        os._exit(3)
    if MODE == "grandchild":
        child = subprocess.Popen(["sleep", "300"])
        note("grandchild", str(child.pid))
    if MODE == "noisy":
        print("\n".join("chatter %d" % number for number in range(300)), file=sys.stderr, flush=True)
    for line in sys.stdin.buffer:
        if MODE == "silent":
            continue
        if MODE == "noisy":
            write(b'Listening on stdio!\n{"not": "a message"}\n[1, 2]\n\xff\xfe\n\n{"jsonrpc": "2.0", "id": 12345, "result": {}}\n')
        if hung.is_set():
            time.sleep(300)
        message = json.loads(line)
        threading.Thread(target=answer, args=(message,), daemon=True).start()
        if MODE == "deaf" and message.get("method") == "notifications/initialized":
            time.sleep(300)


main()
