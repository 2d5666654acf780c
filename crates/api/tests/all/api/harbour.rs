//! A whole server on a real port: database, engine, built-in tools, keys; and HTTP clients.

use reqwest::Method;
use reqwest::header::HeaderMap;
use rutter_api::ApiState;
use rutter_api::http;
use rutter_api::http::gate::RequestGate;
use rutter_api::rate_limit::RequestRate;
use rutter_app::app::{App, AppSettings};
use rutter_app::auth::key::NewApiKey;
use rutter_app::auth::{AccessScope, AccessToken, Authenticator};
use rutter_app::principal::{Principal, PrincipalRole};
use rutter_app::runtime::{Runtime, RuntimeOptions};
use rutter_core::id::TenantId;
use rutter_observe::live::LiveLedger;
use rutter_testkit::server::installation::options;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Timeout for anything a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(60);

const AGENT: &str = "agent-0123456789abcdef0123456789abcdef";
const OPERATOR: &str = "operator-0123456789abcdef0123456789abcdef";

pub struct Harbour {
    pub app: Arc<App>,
    runtime: Runtime,
    pub auth: Arc<Authenticator>,
    pub api: Arc<ApiState>,
    pub base: String,
    closing: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
    folder: TempDir,
}

/// The directory of own templates, beside the database.
const TEMPLATES: &str = "templates";

/// Without rate limits.
pub fn unhurried() -> rutter_api::ApiSettings {
    let free = RequestRate { per_second: 0, burst: 0 };
    rutter_api::ApiSettings { reads: free, changes: free, streams_per_principal: 500 }
}

impl Harbour {
    pub async fn new() -> Harbour {
        Harbour::with("", unhurried()).await
    }

    /// With the tools configured in these lines of rutter.toml.
    pub async fn with(config: &str, settings: rutter_api::ApiSettings) -> Harbour {
        Harbour::open(tempfile::tempdir().unwrap(), config, settings).await
    }

    /// Stops the server and starts again with what is on disk.
    pub async fn restarted(self) -> Harbour {
        let Harbour { app, runtime, auth, api, closing, serving, folder, .. } = self;
        closing.cancel();
        serving.await.unwrap().unwrap();
        runtime.close().await;
        drop((auth, api));
        let deadline = Instant::now() + PATIENCE;
        while Arc::strong_count(&app) > 1 {
            assert!(Instant::now() < deadline, "the database is still in use");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(app);
        Harbour::open(folder, "", unhurried()).await
    }

    async fn open(folder: TempDir, config: &str, settings: rutter_api::ApiSettings) -> Harbour {
        let tokens = vec![
            AccessToken::new("agent", PrincipalRole::Agent, AGENT),
            AccessToken::new("operator", PrincipalRole::Operator, OPERATOR),
        ];
        let settings_of_app = AppSettings { ask_at_client: false, templates: Some(folder.path().join(TEMPLATES)) };
        let options = RuntimeOptions { tokens, settings: settings_of_app, ..options(folder.path(), config) };
        let runtime = Runtime::open(options).await.unwrap();
        let app = Arc::clone(&runtime.app);
        let auth = Arc::clone(&app.auth);
        let closing = CancellationToken::new();
        let live = LiveLedger::new(Arc::clone(&app.feed), closing.clone());
        let api = ApiState::new(Arc::clone(&app), live, settings, rutter_api::openapi::document(), closing.clone());
        let door = Arc::new(RequestGate::new(Vec::new(), Arc::clone(&auth)));
        let router = http::guarded_router([rutter_api::router(Arc::clone(&api), Arc::clone(&auth))], door);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(http::serve(listener, router, closing.clone()));
        Harbour { app, runtime, auth, api, base, closing, serving, folder }
    }

    /// Adds a template of the operator's own.
    pub fn add_template(&self, name: &str, text: &str) {
        let directory = self.folder.path().join(TEMPLATES);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(name), text).unwrap();
    }

    pub fn close(&self) {
        self.closing.cancel();
    }

    pub fn agent(&self) -> Client {
        Client::new(&self.base, AGENT)
    }

    pub fn operator(&self) -> Client {
        Client::new(&self.base, OPERATOR)
    }

    pub fn operators_secret(&self) -> &'static str {
        OPERATOR
    }

    pub fn nobody(&self) -> Client {
        Client::new(&self.base, "")
    }

    pub fn holding(&self, secret: &str) -> Client {
        Client::new(&self.base, secret)
    }

    /// A client with a key of these scopes.
    pub async fn with_key(&self, name: &str, scopes: &[AccessScope]) -> Client {
        Client::new(&self.base, &self.secret_of(name, scopes).await)
    }

    pub async fn secret_of(&self, name: &str, scopes: &[AccessScope]) -> String {
        let owner = Principal::owner(TenantId::new("default"), "operator");
        let scopes = scopes.iter().copied().collect();
        let new = NewApiKey { name: name.to_owned(), scopes, expires_in: None };
        self.auth.create(&owner, new).await.unwrap().1
    }
}

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    pub base: String,
    token: String,
}

pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    pub body: Value,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Asserts success.
    #[track_caller]
    pub fn good(self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.text);
        self.body
    }

    /// Asserts a refusal: the status, problem details, and the code.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.body["code"].as_str()), (status, Some(code)), "{}", self.text);
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(self.body["status"], status);
        for field in ["type", "title", "detail"] {
            assert!(self.body[field].as_str().is_some_and(|text| !text.is_empty()), "{}", self.text);
        }
        assert!(self.body["retryable"].is_boolean());
    }
}

impl Client {
    fn new(base: &str, token: &str) -> Client {
        let http = rutter_tools::tls::client_builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        Client { http: http.build().unwrap(), base: base.to_owned(), token: token.to_owned() }
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let address = if path.starts_with("/api") { String::new() } else { "/api/v1".to_owned() };
        let request = self.http.request(method, format!("{}{address}{path}", self.base));
        if self.token.is_empty() { request } else { request.bearer_auth(&self.token) }
    }

    pub async fn get(&self, path: &str) -> Answer {
        heard(self.request(Method::GET, path)).await
    }

    pub async fn get_with(&self, path: &str, name: &str, value: &str) -> Answer {
        heard(self.request(Method::GET, path).header(name, value)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        heard(self.request(Method::POST, path).json(&body)).await
    }

    pub async fn post_with(&self, path: &str, name: &str, value: &str, body: Value) -> Answer {
        heard(self.request(Method::POST, path).header(name, value).json(&body)).await
    }

    /// Starts a plan and waits until it has ended or asks a question.
    pub async fn execute(&self, plan: &Value) -> Value {
        let answer = self.post("/executions", json!({ "plan": plan, "wait_seconds": 45 })).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.body
    }

    pub async fn signal(&self, execution: &Value, body: Value) -> Answer {
        let id = execution["execution_id"].as_str().unwrap();
        self.post(&format!("/executions/{id}/signals"), body).await
    }
}

pub async fn heard(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await.unwrap();
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    Answer { status, headers, text, body }
}

/// A plan that stores texts in the built-in memory, step by step.
pub fn notes(name: &str, steps: usize) -> Value {
    let steps: Vec<Value> = (0..steps)
        .map(|number| {
            let before = if number == 0 { json!([]) } else { json!([format!("s{}", number - 1)]) };
            json!({ "id": format!("s{number}"), "tool": "memory.store", "depends_on": before,
                "parameters": { "text": format!("{name} {number}") }, "cancellable": "irreversible" })
        })
        .collect();
    json!({ "name": name, "goal": "Remember a few numbers", "steps": steps })
}

/// A plan whose only call a person must approve.
pub fn approved(name: &str) -> Value {
    json!({ "name": name, "steps": [{ "id": "pay", "tool": "memory.store", "cancellable": "irreversible",
        "parameters": { "text": name }, "approval": { "required": true } }] })
}
