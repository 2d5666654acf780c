// One session with Rutter, by a third-party client in TypeScript.
//
//     story.mjs FOLDER LIBRARY MODE stdio PROGRAM ARGUMENT...
//     story.mjs FOLDER LIBRARY MODE http URL TOKEN_FILE
//
// FOLDER contains the packages. LIBRARY is `sdk` (the older one) or `client`, MODE is the library's mode of negotiation:
// `legacy` or `auto`. Every fact is one line of JSON on stdout, which the test checks; nothing is checked here. An error
// that ends the session is an exception.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const PATIENCE_MS = 60_000;
const ENDED = ["completed", "partial", "failed", "cancelled", "compensated"];
const EXECUTION = "rutter://executions/{id}";

const [folder, library, mode, ...way] = process.argv.slice(2);
const load = createRequire(join(folder, "package.json"));

const tell = (fact, more = {}) => process.stdout.write(`${JSON.stringify({ fact, ...more })}\n`);

const plan = (name, tool, more = {}) => ({
    name,
    goal: "one crate is taken care of",
    steps: [{ id: "only", tool, parameters: { crate: name }, ...more }],
});

// What differs between the two packages.
const packages = {
    sdk() {
        const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
        const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");
        const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
        const types = load("@modelcontextprotocol/sdk/types.js");
        const options = { capabilities: { elicitation: {} } };
        const client = new Client({ name: "story-sdk", version: "1" }, options);
        return {
            client,
            StdioClientTransport,
            StreamableHTTPClientTransport,
            onQuestion: (answer) => client.setRequestHandler(types.ElicitRequestSchema, answer),
            onChange: (hear) => client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, hear),
            call: (request, options) => client.callTool(request, undefined, options),
            protocol: (transport) => transport.protocolVersion ?? "unknown",
        };
    },
    client() {
        const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");
        const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");
        const options = { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } };
        const client = new Client({ name: "story-client", version: "1" }, options);
        return {
            client,
            StdioClientTransport,
            StreamableHTTPClientTransport,
            onQuestion: (answer) => client.setRequestHandler("elicitation/create", answer),
            onChange: (hear) => client.setNotificationHandler("notifications/resources/updated", hear),
            call: (request, options) => client.callTool(request, options),
            protocol: () => client.getNegotiatedProtocolVersion(),
        };
    },
};

const made = packages[library]();
const { client } = made;

// The client's user: answers questions as agreed before.
let willSay = [];
made.onQuestion(async (request) => {
    const says = willSay.shift() ?? "decline";
    tell("asked", { message: request.params.message, says });
    const content = { approve: true, reason: "it is our crate" };
    return says === "accept" ? { action: "accept", content } : { action: says };
});

const changed = [];
let wake = () => {};
made.onChange((notification) => {
    changed.push(notification.params.uri);
    wake();
});

function transport() {
    const [kind, place, ...rest] = way;
    if (kind === "stdio") {
        return new made.StdioClientTransport({ command: place, args: rest, stderr: "inherit" });
    }
    const headers = { Authorization: `Bearer ${readFileSync(rest[0], "utf8").trim()}` };
    return new made.StreamableHTTPClientTransport(new URL(place), { requestInit: { headers } });
}

async function call(name, args, options) {
    const result = await made.call({ name, arguments: args }, options);
    const told = JSON.parse(result.content[0].text);
    if (!result.isError && JSON.stringify(result.structuredContent) !== JSON.stringify(told)) {
        throw new Error(`${name} says two things: ${JSON.stringify(result)}`);
    }
    return told;
}

async function saveAndExecute() {
    const refused = await call("save_plan", { plan: plan("first", "dock.lode") });
    tell("refused", { error: refused.error });
    const saved = await call("save_plan", { plan: plan("first", "dock.load") });
    tell("saved", { plan_id: saved.plan_id, revision: saved.revision });
    const heard = [];
    const onprogress = ({ progress, total, message }) => heard.push([progress, total, message]);
    const request = { plan_id: saved.plan_id, request_id: "first" };
    const executed = await call("execute_plan", request, { onprogress });
    tell("executed", { status: executed.status, execution_id: executed.execution_id, progress: heard });
    const asked = { execution_id: executed.execution_id, include_step_details: true };
    const status = await call("status", asked);
    tell("status", { status: status.status, steps: status.steps });
    return executed.execution_id;
}

async function approve() {
    willSay = ["accept"];
    const second = plan("second", "dock.load", { approval: { required: true } });
    const approved = await call("execute_plan", { plan: second });
    tell("approved", { status: approved.status, execution_id: approved.execution_id });
}

async function decline() {
    willSay = ["decline"];
    const third = plan("third", "dock.load", { approval: { required: true } });
    const left = await call("execute_plan", { plan: third });
    const { status, execution_id } = left;
    tell("declined", { status, execution_id, questions: left.questions.length });
    const ended = await call("control", { execution_id, action: "cancel", reason: "it is not wanted" });
    tell("withdrawn", { status: ended.status });
}

async function page(uri) {
    // Changing resources must not come from the client's cache.
    const read = await client.readResource({ uri }, { cacheMode: "bypass" });
    return read.contents[0].text;
}

// Changes of a page until it is final.
async function watch(uri, meanwhile) {
    const isModern = library === "client" && client.getNegotiatedProtocolVersion() >= "2026-07-28";
    const subscription = isModern ? await client.listen({ resourceSubscriptions: [uri] }) : undefined;
    if (!isModern) {
        await client.subscribeResource({ uri });
    }
    await meanwhile();
    const seen = [];
    const timer = setTimeout(() => {
        throw new Error(`nothing more was heard of ${uri}: ${JSON.stringify(seen)}`);
    }, PATIENCE_MS);
    while (seen.length === 0 || !ENDED.includes(seen.at(-1)[1])) {
        if (changed.length === 0) {
            await new Promise((resolve) => {
                wake = resolve;
            });
        }
        seen.push([changed.shift(), JSON.parse(await page(uri)).status]);
    }
    clearTimeout(timer);
    await (isModern ? subscription.close() : client.unsubscribeResource({ uri }));
    return seen;
}

async function cancel() {
    const fourth = { plan: plan("fourth", "dock.wait"), wait_seconds: 0 };
    const begun = await call("execute_plan", fourth);
    const { execution_id, status } = begun;
    tell("begun", { status, execution_id });
    const stop = { execution_id, action: "cancel", reason: "it is not wanted", wait_seconds: 0 };
    const seen = await watch(EXECUTION.replace("{id}", execution_id), () => call("control", stop));
    tell("watched", { execution_id, seen });
}

async function read(first) {
    const { prompts } = await client.listPrompts();
    tell("prompts", { names: prompts.map((prompt) => prompt.name) });
    const prompt = await client.getPrompt({ name: "plan_goal", arguments: { goal: "load every crate" } });
    tell("prompt", { text: prompt.messages[0].content.text });
    tell("guide", { text: await page("rutter://guide") });
    const template = { type: "ref/resource", uri: EXECUTION };
    const named = { type: "ref/prompt", name: "take_over" };
    for (const [of, ref, name] of [["template", template, "id"], ["prompt", named, "execution_id"]]) {
        const found = await client.complete({ ref, argument: { name, value: first.slice(0, -4) } });
        tell("completed", { of, values: found.completion.values });
    }
    const ledger = await call("query_ledger", { execution_id: first, include_events: true });
    tell("ledger", { ledger });
}

const line = transport();
await client.connect(line);
tell("connected", { protocol: made.protocol(line), server: client.getServerVersion().name });
const { tools } = await client.listTools();
tell("tools", { names: tools.map((tool) => tool.name) });
const first = await saveAndExecute();
await approve();
await decline();
await cancel();
await read(first);
await client.close();
tell("end");
