#!/usr/bin/env python3
"""One session with Rutter, by a third-party client in Python.

    story.py LIBRARY MODE stdio PROGRAM ARGUMENT...
    story.py LIBRARY MODE http URL TOKEN_FILE

LIBRARY is `mcp` or `fastmcp`, MODE is the library's mode of negotiation: `auto` or `legacy`. Every fact is one line of
JSON on stdout, which the test checks; nothing is checked here. An error that ends the session is an exception.
"""
import asyncio
import json
import sys

import httpx2
import mcp_types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import listen
from mcp_types import ElicitResult, Implementation, PromptReference, ResourceTemplateReference

PATIENCE_SECONDS = 60
ENDED = ("completed", "partial", "failed", "cancelled", "compensated")
EXECUTION = "rutter://executions/{id}"


def tell(fact, **more):
    print(json.dumps({"fact": fact, **more}), flush=True)


def plan(name, tool, **more):
    step = {"id": "only", "tool": tool, "parameters": {"crate": name}, **more}
    return {"name": name, "goal": "one crate is taken care of", "steps": [step]}


class Person:
    """The client's user: answers questions as agreed before."""

    def __init__(self):
        self.will_say = []

    def answer(self, message):
        says = self.will_say.pop(0) if self.will_say else "decline"
        tell("asked", message=message, says=says)
        if says == "accept":
            return ElicitResult(action="accept", content={"approve": True, "reason": "it is our crate"})
        return ElicitResult(action=says)


class Pages:
    """The pages that have changed, for clients that get one notification at a time."""

    def __init__(self):
        self.changed = asyncio.Queue()

    async def hear(self, message):
        message = getattr(message, "root", message)
        if isinstance(message, mcp_types.ResourceUpdatedNotification):
            self.changed.put_nowait(str(message.params.uri))


def ours(mode, way, person, pages):
    async def asked(_context, params):
        return person.answer(params.message)

    if way[0] == "stdio":
        server = StdioServerParameters(command=way[1], args=way[2:])
    else:
        server = streamable_http_client(way[1], http_client=httpx2.AsyncClient(headers=key(way), timeout=PATIENCE_SECONDS))
    return Client(
        server,
        mode=mode,
        elicitation_callback=asked,
        message_handler=pages.hear,
        client_info=Implementation(name="story-mcp", version="1"),
    )


def fast(mode, way, person, pages):
    import fastmcp
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    async def asked(message, _type, _params, _context):
        return person.answer(message)

    if way[0] == "stdio":
        transport = StdioTransport(command=way[1], args=way[2:], keep_alive=False)
    else:
        transport = StreamableHttpTransport(way[1], headers=key(way))
    return fastmcp.Client(
        transport,
        mode=mode,
        elicitation_handler=asked,
        message_handler=pages.hear,
        client_info=Implementation(name="story-fastmcp", version="1"),
    )


def key(way):
    with open(way[2], encoding="utf-8") as file:
        return {"Authorization": f"Bearer {file.read().strip()}"}


class Voyage:
    """The session itself. Where the two libraries differ, it checks which one it is."""

    def __init__(self, library, client, person, pages):
        self.is_fast = library == "fastmcp"
        self.client, self.person, self.pages = client, person, pages

    async def call(self, tool, arguments, progress=None):
        if self.is_fast:
            result = await self.client.call_tool_mcp(tool, arguments, progress_handler=progress)
        else:
            result = await self.client.call_tool(tool, arguments, progress_callback=progress)
        told = json.loads(result.content[0].text)
        if not result.is_error and result.structured_content != told:
            raise AssertionError(f"{tool} has two different results: {result}")
        return told

    async def sail(self):
        tell("connected", protocol=self.client.protocol_version, server=self.client.server_info.name)
        tools = await self.client.list_tools()
        tell("tools", names=[tool.name for tool in (tools if self.is_fast else tools.tools)])
        await self.save_and_execute()
        await self.approve()
        await self.decline()
        await self.cancel()
        await self.read()

    async def save_and_execute(self):
        refused = await self.call("save_plan", {"plan": plan("first", "dock.lode")})
        tell("refused", error=refused["error"])
        saved = await self.call("save_plan", {"plan": plan("first", "dock.load")})
        tell("saved", plan_id=saved["plan_id"], revision=saved["revision"])
        heard = []

        async def progress(done, total, message):
            heard.append([done, total, message])

        executed = await self.call("execute_plan", {"plan_id": saved["plan_id"], "request_id": "first"}, progress)
        tell("executed", status=executed["status"], execution_id=executed["execution_id"], progress=heard)
        self.first = executed["execution_id"]
        status = await self.call("status", {"execution_id": self.first, "include_step_details": True})
        tell("status", status=status["status"], steps=status["steps"])

    async def approve(self):
        self.person.will_say = ["accept"]
        approved = await self.call("execute_plan", {"plan": plan("second", "dock.load", approval={"required": True})})
        tell("approved", status=approved["status"], execution_id=approved["execution_id"])

    async def decline(self):
        self.person.will_say = ["decline"]
        left = await self.call("execute_plan", {"plan": plan("third", "dock.load", approval={"required": True})})
        tell("declined", status=left["status"], execution_id=left["execution_id"], questions=len(left["questions"]))
        ended = await self.call("control", {"execution_id": left["execution_id"], "action": "cancel", "reason": "it is not wanted"})
        tell("withdrawn", status=ended["status"])

    async def cancel(self):
        begun = await self.call("execute_plan", {"plan": plan("fourth", "dock.wait"), "wait_seconds": 0})
        execution = begun["execution_id"]
        tell("begun", status=begun["status"], execution_id=execution)
        uri = EXECUTION.format(id=execution)
        seen = []
        async with self.watching(uri) as changes:
            await self.call("control", {"execution_id": execution, "action": "cancel", "reason": "it is not wanted", "wait_seconds": 0})
            async with asyncio.timeout(PATIENCE_SECONDS):
                async for changed in changes:
                    seen.append([changed, await self.state(uri)])
                    if seen[-1][1] in ENDED:
                        break
        tell("watched", execution_id=execution, seen=seen)

    def watching(self, uri):
        if self.client.protocol_version >= "2026-07-28":
            return Listening(self.client.session, uri)
        return Subscribed(self.client.session, uri, self.pages)

    async def state(self, uri):
        return json.loads(await self.page(uri))["status"]

    async def page(self, uri):
        # Changing resources must not come from the client's cache.
        if self.is_fast:
            contents = await self.client.read_resource(uri)
        else:
            contents = (await self.client.read_resource(uri, cache_mode="bypass")).contents
        return contents[0].text

    async def read(self):
        prompts = await self.client.list_prompts()
        tell("prompts", names=[prompt.name for prompt in (prompts if self.is_fast else prompts.prompts)])
        prompt = await self.client.get_prompt("plan_goal", {"goal": "load every crate"})
        tell("prompt", text=prompt.messages[0].content.text)
        tell("guide", text=await self.page("rutter://guide"))
        session = self.client.session
        for name, ref, argument in [
            ("template", ResourceTemplateReference(uri=EXECUTION), "id"),
            ("prompt", PromptReference(name="take_over"), "execution_id"),
        ]:
            found = await session.complete(ref=ref, argument={"name": argument, "value": self.first[:-4]})
            tell("completed", of=name, values=found.completion.values)
        ledger = await self.call("query_ledger", {"execution_id": self.first, "include_events": True})
        tell("ledger", ledger=ledger)


class Listening:
    """Changes of a page, for clients of the newer era."""

    def __init__(self, session, uri):
        self.subscription = listen(session, resource_subscriptions=[uri])

    async def __aenter__(self):
        events = await self.subscription.__aenter__()

        async def changes():
            async for event in events:
                yield str(event.uri)

        return changes()

    async def __aexit__(self, *error):
        await self.subscription.__aexit__(*error)


class Subscribed:
    """The same in the older era."""

    def __init__(self, session, uri, pages):
        self.session, self.uri, self.pages = session, uri, pages

    async def __aenter__(self):
        await self.session.subscribe_resource(self.uri)

        async def changes():
            while True:
                yield await self.pages.changed.get()

        return changes()

    async def __aexit__(self, *_error):
        await self.session.unsubscribe_resource(self.uri)


async def main():
    library, mode, *way = sys.argv[1:]
    person, pages = Person(), Pages()
    make = {"mcp": ours, "fastmcp": fast}[library]
    async with make(mode, way, person, pages) as client:
        await Voyage(library, client, person, pages).sail()
    tell("end")


asyncio.run(main())
