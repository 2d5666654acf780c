//! Obtains tokens. Rutter itself has no OAuth client: people put tokens into `headers`. This one is the library's.

use super::ClientScenario;
use anyhow::{Context, bail};
use reqwest::header::{ACCEPT, LOCATION, WWW_AUTHENTICATE};
use reqwest::redirect::Policy;
use rmcp::transport::auth::{AuthorizationRequest, OAuthState, WWWAuthenticateParams};
use rutter_tools::tls::client_builder;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use url::Url;

/// Nothing listens there; the address is read from the redirection.
const REDIRECT: &str = "http://localhost:3000/callback";
/// The metadata document of this client, for servers that accept documents.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

pub(super) struct OAuthTokens {
    url: Url,
    /// A client id and secret from elsewhere.
    known: Option<(String, String)>,
    /// The scopes requested so far; each authorization requests them again.
    scopes: BTreeSet<String>,
    browser: reqwest::Client,
}

impl OAuthTokens {
    pub(super) fn new(scenario: &ClientScenario) -> anyhow::Result<OAuthTokens> {
        let text = |name: &str| scenario.context[name].as_str().map(str::to_owned);
        Ok(OAuthTokens {
            url: scenario.url.clone(),
            known: text("client_id").zip(text("client_secret")),
            scopes: BTreeSet::new(),
            browser: browser()?,
        })
    }

    pub(super) async fn obtain(&mut self, challenge: Option<String>) -> anyhow::Result<String> {
        let mut request = AuthorizationRequest::new(REDIRECT)
            .with_client_name("rutter-conformance")
            .with_client_metadata_url(DOCUMENT)
            .with_initial_scope_selection();
        if let Some((id, secret)) = &self.known {
            request = request.with_preregistered_client(id).with_client_secret(secret);
        }
        if let Some(challenge) = challenge {
            let wanted = WWWAuthenticateParams::parse(&challenge, &self.url).scope.unwrap_or_default();
            if !self.scopes.is_empty() {
                self.scopes.extend(wanted.split_whitespace().map(str::to_owned));
                request = request.with_scopes(&self.scopes);
            }
            request = request.with_challenge(challenge);
        }
        let mut state = OAuthState::new(self.url.as_str(), None).await?;
        state.start_authorization(request).await?;
        let page = state.get_authorization_url().await?;
        let asked = Url::parse(&page)?;
        let scope = asked.query_pairs().find(|(name, _)| name == "scope").map(|(_, scope)| scope.into_owned());
        self.scopes.extend(scope.iter().flat_map(|scope| scope.split_whitespace()).map(str::to_owned));
        let answer = self.browser.get(page).send().await?;
        let Some(back) = answer.headers().get(LOCATION) else {
            bail!("the authorization server answered {} instead of redirecting", answer.status());
        };
        state.handle_callback_url(back.to_str()?).await?;
        let authorized = state.into_authorization_manager().context("authorized, and no token")?;
        Ok(authorized.get_access_token().await?)
    }
}

/// The server's challenge after a refusal; the connector does not return it, so the request is sent once more.
pub(super) async fn challenge(url: &Url, method: &str, token: Option<&str>) -> anyhow::Result<Option<String>> {
    let body = json!({ "jsonrpc": "2.0", "id": "challenge", "method": method, "params": params(method) });
    let mut request = browser()?
        .post(url.as_str())
        .header(ACCEPT, "application/json, text/event-stream")
        .header("Mcp-Method", method)
        .json(&body);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let answer = request.send().await?;
    let wanted = answer.headers().get(WWW_AUTHENTICATE).and_then(|wanted| wanted.to_str().ok());
    Ok(wanted.map(str::to_owned))
}

fn params(method: &str) -> Value {
    match method {
        "tools/call" => json!({ "name": "challenge", "arguments": {} }),
        _ => json!({}),
    }
}

/// Returns redirections instead of following them.
fn browser() -> reqwest::Result<reqwest::Client> {
    client_builder().redirect(Policy::none()).no_proxy().build()
}
