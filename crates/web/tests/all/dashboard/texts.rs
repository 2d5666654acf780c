//! Texts of agents, tools and people are escaped, whatever they contain.

use crate::dashboard::harbour::Harbour;
use crate::dashboard::markup::check;
use rutter_app::principal::McpToolset;
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::ClientEra;
use serde_json::json;

const PAYLOADS: [&str; 50] = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<ScRiPt src=//elsewhere.example/x.js></ScRiPt>",
    "<img src=x onerror=alert(1)>",
    "<img/src=\"x\"/onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg/onload=alert`1`>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc=\"<script>alert(1)</script>\">",
    "<object data=javascript:alert(1)>",
    "<embed src=javascript:alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "<a href=\"&#106;avascript:alert(1)\">x</a>",
    "<form action=//elsewhere.example><button>x</button></form>",
    "<base href=//elsewhere.example/>",
    "<meta http-equiv=refresh content=0;url=//elsewhere.example>",
    "<link rel=stylesheet href=//elsewhere.example/x.css>",
    "<style>*{display:none}</style>",
    "<div style=position:fixed;inset:0>x</div>",
    "<math><mi xlink:href=javascript:alert(1)>x</mi></math>",
    "<video><source onerror=alert(1)>",
    "<audio src=x onerror=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<select onchange=alert(1)><option>x</select>",
    "<textarea onfocus=alert(1)>x</textarea>",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</pre></div></main><script>alert(1)</script>",
    "\" onmouseover=\"alert(1)",
    "' onmouseover='alert(1)",
    "\"><script>alert(1)</script>",
    "'><img src=x onerror=alert(1)>",
    "\" autofocus onfocus=alert(1) x=\"",
    "` onmouseover=alert(1)",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "{{ 7*7 }}{% raw %}",
    "${alert(1)}",
    "<!--><script>alert(1)</script>-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml version=\"1.0\"?><script/>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "<\u{0}script>alert(1)</script>",
    "\u{1b}[31mred\u{1b}[0m<b>",
    "\u{202e}evil\u{202c}<b>",
    "\u{feff}<scr\u{200b}ipt>",
    "<x\u{e0041} onclick=alert(1)>",
];

fn escaped(text: &str) -> String {
    let safe = text.replace('&', "&#38;").replace('<', "&#60;").replace('>', "&#62;");
    safe.replace('"', "&#34;").replace('\'', "&#39;")
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_agents_and_tools_never_become_markup() {
    let deck = ServerFixture::new().await;
    let harbour = Harbour::open(&deck).await;
    let mut recorder =
        deck.client_with(ClientEra::Modern, &[McpToolset::Journal, McpToolset::Default], json!({})).await;
    let mut visible = 0;
    for payload in PAYLOADS {
        let plan = json!({ "name": payload, "description": payload, "tags": [payload], "steps": [
            { "id": "a", "name": payload, "tool": "own.call", "parameters": { payload: payload }, "cancellable": "irreversible" } ] });
        let plan = recorder.call("record_plan", plan).await;
        if plan.get("error").is_none() {
            let started = recorder.call("record_execution_start", json!({ "plan_id": plan["plan_id"] })).await;
            let execution = &started["execution_id"];
            for (tool, arguments) in [
                ("record_decision", json!({ "execution_id": execution, "action": "continue", "reason": payload })),
                ("record_action", json!({ "execution_id": execution, "action_type": "other", "description": payload })),
                (
                    "record_step",
                    json!({ "execution_id": execution, "step_id": "a", "status": "failed", "error": payload }),
                ),
                (
                    "control",
                    json!({ "execution_id": execution, "action": "pause", "reason": payload, "wait_seconds": 0 }),
                ),
            ] {
                recorder.call(tool, arguments).await;
            }
        }
        // A name with hidden characters is refused.
        let name = if payload.chars().any(rutter_core::text::is_hidden) { "hidden" } else { payload };
        let call = json!({ "plan": { "name": name, "goal": payload, "steps": [ { "id": "keep", "tool": "memory.store",
            "parameters": { "text": payload }, "cancellable": "irreversible", "approval": { "required": true } } ] } });
        let waiting = recorder.call("execute_plan", call).await;
        for path in ["/", "/approvals", "/executions", "/journal"] {
            check(&format!("{path} after {payload:?}"), &harbour.page(path).await);
        }
        if waiting["status"] == "waiting" && payload.is_ascii() && !payload.contains(|c: char| c.is_control()) {
            let page = harbour.page("/approvals").await;
            assert!(page.contains(&escaped(payload)), "{payload:?} is shown escaped: {page}");
            visible += 1;
        }
    }
    assert!(visible > 35, "{visible} payloads reached the page");
    let page = harbour.page("/approvals").await;
    for hidden in ['\u{0}', '\u{1b}', '\u{202e}', '\u{200b}', '\u{feff}', '\u{e0041}'] {
        assert!(!page.contains(hidden), "{hidden:?} is invisible on the page");
    }
    assert!(page.contains("⟦U+202E⟧evil"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_urls_and_forms_never_become_markup() {
    let deck = ServerFixture::new().await;
    let harbour = Harbour::open(&deck).await;
    for payload in PAYLOADS {
        let typed = reqwest::Url::parse_with_params("http://x/", [("v", payload)]).unwrap();
        let typed = typed.query().unwrap().strip_prefix("v=").unwrap().to_owned();
        for name in ["text", "plan", "tag", "from", "until", "status", "after", "said"] {
            let path = format!("/executions?{name}={typed}");
            check(&path, &harbour.get(&path).await.1);
        }
        for name in ["text", "kind", "actor", "execution", "from", "until", "after"] {
            let path = format!("/journal?{name}={typed}");
            check(&path, &harbour.get(&path).await.1);
        }
        for path in
            [format!("/{typed}"), format!("/approvals?after={typed}"), format!("/journal/export?format={typed}")]
        {
            check(&path, &harbour.get(&path).await.1);
        }
        let form =
            [("action", payload), ("execution", payload), ("back", payload), ("say", payload), ("part", payload)];
        for path in ["/executions/bulk", "/executions/exec_1/answer", "/theme"] {
            check(path, &harbour.post(path, &form).await.1);
        }
        let form = [("action", "pause"), ("execution", payload), ("back", payload)];
        check("bulk", &harbour.post("/executions/bulk", &form).await.1);
    }
}
