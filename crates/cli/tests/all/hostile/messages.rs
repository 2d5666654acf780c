//! Messages that are invalid in every known way, and then some at random. The same seed gives the same ones.

use crate::hostile::tools;
use crate::hostile::wire::{Era, introduction};
use rutter_testkit::chance::SeededRandom;
use serde_json::{Value, json};

/// How many there are in each era.
pub const COUNT: usize = 400;
const MESSAGE_BYTES_MAX: usize = 4 << 20;

#[derive(Debug)]
pub struct Case {
    pub category: &'static str,
    pub bytes: Vec<u8>,
    /// The request cannot succeed, so its response must be an error.
    pub must_fail: bool,
}

impl Case {
    pub fn wrong(category: &'static str, message: impl ToString) -> Case {
        Case { category, bytes: message.to_string().into_bytes(), must_fail: true }
    }

    /// It may be valid.
    pub fn odd(category: &'static str, message: impl ToString) -> Case {
        Case { must_fail: false, ..Case::wrong(category, message) }
    }

    /// For a report: the beginning.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.bytes.len().min(300)]).into_owned()
    }
}

/// `offered`: the tools as the server lists them.
pub fn all(era: Era, offered: &[Value], seed: u64) -> Vec<Case> {
    let mut maker = Maker { era, number: 0 };
    let mut cases = Vec::new();
    cases.extend(maker.envelopes());
    cases.extend(maker.ids());
    cases.extend(maker.params());
    cases.extend(maker.metas());
    cases.extend(maker.bytes());
    cases.extend(maker.pages());
    cases.extend(maker.notices());
    for (arguments, must_fail) in offered.iter().flat_map(tools::calls) {
        let request = maker.request("tools/call", arguments);
        cases.push(Case { must_fail, ..Case::wrong("tools/call", request) });
    }
    let mut chance = SeededRandom::new(seed);
    while cases.len() < COUNT {
        cases.push(maker.damaged(&mut chance, offered));
    }
    cases.truncate(COUNT);
    cases
}

struct Maker {
    era: Era,
    number: u64,
}

impl Maker {
    fn id(&mut self) -> Value {
        self.number += 1;
        // Both kinds of ids.
        if self.number.is_multiple_of(2) { json!(self.number) } else { json!(format!("h{}", self.number)) }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.id();
        self.era.request(id, method, params)
    }

    /// A request with a member that is changed or missing.
    fn with(&mut self, name: &str, value: Option<Value>) -> Value {
        let mut request = self.request("tools/list", json!({}));
        match value {
            Some(value) => request[name] = value,
            None => drop(request.as_object_mut().unwrap().remove(name)),
        }
        request
    }

    fn envelopes(&mut self) -> Vec<Case> {
        let mut cases = Vec::new();
        for version in [None, Some(json!("1.0")), Some(json!(2)), Some(json!(2.0)), Some(json!(null)), Some(json!([]))]
        {
            cases.push(Case::wrong("jsonrpc", self.with("jsonrpc", version)));
        }
        let long = "m".repeat(100_000);
        let methods = [
            json!(7),
            json!(null),
            json!(""),
            json!([]),
            json!({}),
            json!(true),
            json!("no/such"),
            json!("tools/call "),
            json!("TOOLS/LIST"),
            json!("rpc.discover"),
            json!("tools\u{0}/list"),
            json!(long),
        ];
        for method in std::iter::once(None).chain(methods.into_iter().map(Some)) {
            cases.push(Case::wrong("method", self.with("method", method)));
        }
        let (one, other) = (self.with("a", None), self.with("method", Some(json!("no/such"))));
        for batch in [json!([]), json!([one]), json!([1, 2]), json!([[]]), json!([other, { "id": 1 }]), json!(["x"])] {
            cases.push(Case::wrong("batch", batch));
        }
        for text in ["7", "\"tools/list\"", "true", "null", "{}", "-0", "{\"id\":1}", "{\"result\":1,\"id\":{}}"] {
            cases.push(Case::wrong("members", text));
        }
        cases.push(Case::wrong("members", self.with("result", Some(json!({})))["params"].clone()));
        cases.push(Case::odd("members", self.with("extra", Some(json!({ "deep": [1, 2, { "er": null }] })))));
        cases.push(Case::odd("members", self.with("error", Some(json!({ "code": 1, "message": "both" })))));
        cases
    }

    fn ids(&mut self) -> Vec<Case> {
        let ids =
            [json!(null), json!(1.5), json!({}), json!([]), json!(true), json!(1e300), json!(u64::MAX), json!([1])];
        let mut cases: Vec<Case> = ids.into_iter().map(|id| Case::wrong("id", self.with("id", Some(id)))).collect();
        // These are valid ids; the method is still unknown.
        let usable = [
            json!(""),
            json!(-1),
            json!(0),
            json!(i64::MIN),
            json!("x".repeat(100_000)),
            json!("\u{0}"),
            json!("ä\u{1f6a2}"),
        ];
        for id in usable {
            cases.push(Case::wrong("id", self.era.request(id, "no/such", json!({}))));
        }
        let twice = self.with("method", Some(json!("no/such"))).to_string();
        cases.push(Case::wrong("id", twice.replacen('{', "{\"id\":\"first\",", 1)));
        cases.push(Case::wrong("id", twice.replacen("\"id\":", "\"id\":99999999999999999999999,\"was\":", 1)));
        cases
    }

    fn params(&mut self) -> Vec<Case> {
        let mut cases = Vec::new();
        for params in [json!([]), json!("text"), json!(7), json!(true), json!([{ "name": "status" }])] {
            cases.push(Case::wrong("params", self.with("params", Some(params))));
        }
        for method in ["initialize", "tools/call", "prompts/get", "resources/read", "completion/complete"] {
            for params in [json!({}), json!({ "name": 7, "uri": 7, "ref": 7 }), json!({ "name": null, "uri": [] })] {
                cases.push(Case::wrong("params", self.request(method, params)));
            }
        }
        let call = |arguments: Value| json!({ "name": "status", "arguments": arguments });
        for arguments in [json!([]), json!("text"), json!(7), json!(true)] {
            cases.push(Case::wrong("params", self.request("tools/call", call(arguments))));
        }
        for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
            cases.push(Case::odd("params", self.request(method, json!({ "cursor": "nowhere" }))));
            cases.push(Case::odd("params", self.request(method, json!({ "cursor": { "a": 1 } }))));
        }
        let mut strange = introduction(self.id());
        strange["params"]["protocolVersion"] = json!("1999-12-31");
        cases.push(Case::odd("params", strange));
        cases
    }

    fn metas(&mut self) -> Vec<Case> {
        const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
        const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
        let (known, none) = (json!("2026-07-28"), json!({}));
        let metas = [
            json!({}),
            json!([]),
            json!("text"),
            json!(7),
            json!(null),
            json!({ VERSION: known }),
            json!({ CAPABILITIES: none }),
            json!({ VERSION: "1999-01-01", CAPABILITIES: none }),
            json!({ VERSION: 20260728, CAPABILITIES: none }),
            json!({ VERSION: null, CAPABILITIES: none }),
            json!({ VERSION: known, CAPABILITIES: "all" }),
            json!({ VERSION: known, CAPABILITIES: [] }),
            json!({ VERSION: "", CAPABILITIES: none }),
            json!({ VERSION: "9999-99-99", CAPABILITIES: none }),
        ];
        let mut cases = Vec::new();
        for meta in metas {
            let mut request = self.request("tools/list", json!({}));
            request["params"]["_meta"] = meta;
            // Initialized clients need not send it again.
            cases.push(Case { must_fail: self.era == Era::Modern, ..Case::wrong("_meta", request) });
        }
        for token in [json!({}), json!(1.5), json!(null), json!([]), json!("t".repeat(100_000))] {
            let mut request = self.request("tools/list", json!({}));
            request["params"]["_meta"]["progressToken"] = token;
            cases.push(Case::odd("_meta", request));
        }
        for client in
            [json!(7), json!({ "name": 7 }), json!("me"), json!({ "name": "n".repeat(10_000), "version": "1" })]
        {
            let mut request = self.request("tools/list", json!({}));
            request["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = client;
            cases.push(Case::odd("_meta", request));
        }
        cases
    }

    fn bytes(&mut self) -> Vec<Case> {
        let mut cases = Vec::new();
        let mut raw = |bytes: Vec<u8>| cases.push(Case { category: "bytes", bytes, must_fail: true });
        let mut unknown = || self.with("method", Some(json!("no/such"))).to_string();
        for length in [MESSAGE_BYTES_MAX - 1, MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX + 1] {
            let mut padded = unknown().into_bytes();
            padded.resize(length, b' ');
            raw(padded);
        }
        for depth in [200, 10_000] {
            let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            raw(unknown().replacen("\"params\":{", &format!("\"params\":{{\"deep\":{nested},"), 1).into_bytes());
            raw(nested.into_bytes());
            raw("{\"a\":".repeat(depth).into_bytes());
        }
        let whole = unknown();
        for end in [1, 2, 10, whole.len() / 2, whole.len() - 1] {
            raw(whole.as_bytes()[..end].to_vec());
        }
        for (from, to) in
            [("no/such", &b"no/\xff\xfe"[..]), ("no/such", b"no/\0such"), ("no/such", b"\xc3"), ("2.0", b"2.0\0")]
        {
            let at = whole.find(from).unwrap();
            raw([&whole.as_bytes()[..at], to, &whole.as_bytes()[at + from.len()..]].concat());
        }
        for escaped in ["\\ud800", "\\udc00\\ud800", "\\u0000", "\\q", "\\uZZZZ"] {
            raw(unknown().replacen("no/such", escaped, 1).into_bytes());
        }
        raw(format!("\u{feff}{}", unknown()).into_bytes());
        raw(format!("{}\r", unknown()).into_bytes());
        raw(format!("  \t {} \t ", unknown()).into_bytes());
        raw(format!("{}{}", unknown(), unknown()).into_bytes());
        raw(format!("{} trailing", unknown()).into_bytes());
        raw(unknown().replace('"', "'").into_bytes());
        raw(unknown().replacen("\"params\":", "\"params\":NaN,\"p\":", 1).into_bytes());
        for nothing in ["", "   ", "\r", "\t\t"] {
            raw(nothing.as_bytes().to_vec());
        }
        raw(vec![0; 1000]);
        raw((128..=255).collect());
        cases
    }

    fn pages(&mut self) -> Vec<Case> {
        let mut cases = Vec::new();
        let long = format!("rutter://{}", "x".repeat(1_000_000));
        for uri in [
            "",
            "rutter://",
            "rutter://nothing",
            "file:///etc/passwd",
            "rutter://../../etc/passwd",
            "rutter://executions/",
            "rutter://executions/exec_none",
            "rutter://plans/%00",
            "rutter://executions/\u{0}",
            "RUTTER://GUIDE",
            "rutter://executions/exec_none/journal?after=-1",
            "rutter://guide/../guide",
            &long,
        ] {
            cases.push(Case::wrong("resources", self.request("resources/read", json!({ "uri": uri }))));
        }
        for arguments in
            [json!({}), json!({ "goal": 7 }), json!({ "goal": "" }), json!({ "no": "such" }), json!([]), json!("x")]
        {
            let params = json!({ "name": "plan_goal", "arguments": arguments });
            cases.push(Case::wrong("prompts", self.request("prompts/get", params)));
        }
        for name in ["", "no_such", "plan_goal ", "../plan_goal"] {
            cases.push(Case::wrong("prompts", self.request("prompts/get", json!({ "name": name }))));
        }
        for reference in
            [json!({}), json!({ "type": "ref/none", "name": "x" }), json!({ "type": "ref/prompt" }), json!(7)]
        {
            let params = json!({ "ref": reference, "argument": { "name": "id", "value": "" } });
            cases.push(Case::wrong("completion", self.request("completion/complete", params)));
        }
        for uri in ["", "nonsense", "rutter://executions/exec_none"] {
            cases.push(Case::odd("subscribe", self.request("resources/subscribe", json!({ "uri": uri }))));
            cases.push(Case::odd("subscribe", self.request("resources/unsubscribe", json!({ "uri": uri }))));
        }
        for method in ["tasks/get", "tasks/cancel", "tasks/update", "tasks/list", "tasks/result"] {
            cases.push(Case::wrong("tickets", self.request(method, json!({ "taskId": "exec_none" }))));
        }
        cases
    }

    fn notices(&mut self) -> Vec<Case> {
        let notice = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "method": method, "params": params });
        let mut messages = vec![notice("notifications/initialized", json!({})), notice("no/such", json!({}))];
        for id in [json!("nobody"), json!(-7), json!(null), json!({}), json!(1.5)] {
            messages.push(notice("notifications/cancelled", json!({ "requestId": id })));
            messages.push(notice("notifications/progress", json!({ "progressToken": id, "progress": "far" })));
        }
        for answer in
            [json!({ "result": {} }), json!({ "error": { "code": 1, "message": "no" } }), json!({ "result": null })]
        {
            let mut message = json!({ "jsonrpc": "2.0", "id": self.id() });
            message.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
            messages.push(message);
        }
        messages.push(json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32700, "message": "you too" } }));
        messages.into_iter().map(|message| Case::odd("notices", message)).collect()
    }

    /// A valid request with some damage: values are replaced, members removed, bytes flipped.
    fn damaged(&mut self, chance: &mut SeededRandom, offered: &[Value]) -> Case {
        let tool = chance.pick(offered)["name"].clone();
        let requests = [
            (
                "tools/call",
                json!({ "name": tool, "arguments": { "execution_id": "exec_none", "plan": { "name": "p", "steps": [] } } }),
            ),
            ("prompts/get", json!({ "name": "plan_goal", "arguments": { "goal": "sail" } })),
            ("resources/read", json!({ "uri": "rutter://guide" })),
            ("tools/list", json!({ "cursor": "" })),
        ];
        let (method, params) = chance.pick(&requests).clone();
        let mut message = self.request(method, params);
        for _ in 0..=chance.below(2) {
            let pointers = pointers(&message, String::new());
            let pointer = chance.pick(&pointers).clone();
            let junk = [
                json!(null),
                json!(-1),
                json!(1e308),
                json!(""),
                json!("\u{0}"),
                json!([]),
                json!({ "a": [{}] }),
                json!(true),
            ];
            if let Some(place) = message.pointer_mut(&pointer) {
                *place = chance.pick(&junk).clone();
            }
        }
        let mut bytes = message.to_string().into_bytes();
        if chance.percent(25) {
            let at = chance.index(bytes.len());
            // A line stays a line.
            bytes[at] = match chance.below(256) as u8 {
                b'\n' | b'\r' => b'?',
                byte => byte,
            };
        }
        Case { category: "damaged", bytes, must_fail: false }
    }
}

fn pointers(value: &Value, here: String) -> Vec<String> {
    let mut all = vec![here.clone()];
    if let Value::Object(fields) = value {
        let escaped = |name: &String| name.replace('~', "~0").replace('/', "~1");
        all.extend(fields.iter().flat_map(|(name, value)| pointers(value, format!("{here}/{}", escaped(name)))));
    }
    all
}
