//! Validates the configuration of a request. All problems are reported at once, each with its location.

use super::template::{HttpTemplate, HttpTemplatePiece};
use crate::config::http::{self, RequestBody};
use crate::secret::SecretVault;
use reqwest::header::HeaderName;
use serde_json::Value;
use std::collections::BTreeMap;

/// Headers that belong to the connection, or that are set from what is sent.
const NOT_OURS: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub(super) struct HttpConfigCheck<'a> {
    pub(super) vault: &'a SecretVault,
    /// `http.shop.tools.order`
    pub(super) place: String,
    pub(super) problems: &'a mut Vec<String>,
}

impl HttpConfigCheck<'_> {
    pub(super) fn problem(&mut self, field: &str, message: &str) {
        self.problems.push(format!("{}.{field}: {message}", self.place));
    }

    /// The segments of a path, without the slashes.
    pub(super) fn path(&mut self, path: &str) -> Vec<HttpTemplate> {
        if !path.starts_with('/') {
            self.problem("path", "expected a path that begins with `/`");
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@%/{}".contains(c);
        if let Some(c) = path.chars().find(|c| !plain(*c)) {
            let hint = if c == '?' { "; put it under `query`" } else { "; write it percent-encoded" };
            self.problem("path", &format!("{c:?} cannot be in a path{hint}"));
        }
        let mut segments = Vec::new();
        for text in path.strip_prefix('/').unwrap_or(path).split('/') {
            let segment = self.template("path", text);
            if segment.secrets().next().is_some() {
                self.problem("path", "a secret cannot be part of a path; put it in a header");
            }
            if let [HttpTemplatePiece::Text(text)] = segment.pieces.as_slice()
                && is_dots(text)
            {
                self.problem("path", "`.` and `..` cannot be part of a path; write the resulting path");
            }
            segments.push(segment);
        }
        segments
    }

    pub(super) fn query(&mut self, query: &BTreeMap<String, String>) -> Vec<(String, HttpTemplate)> {
        let read = |(name, text): (&String, &String)| (name.clone(), self.template(&format!("query.{name}"), text));
        query.iter().map(read).collect()
    }

    /// The headers of the server, overridden and extended by those of the tool.
    pub(super) fn headers(
        &mut self,
        of_server: &BTreeMap<String, String>,
        of_tool: &BTreeMap<String, String>,
    ) -> Vec<(HeaderName, HttpTemplate)> {
        let mut headers: Vec<(HeaderName, HttpTemplate)> = Vec::new();
        for (name, text) in of_server.iter().chain(of_tool) {
            let field = format!("headers.{name}");
            let template = self.template(&field, text);
            let plain = |piece: &HttpTemplatePiece| !matches!(piece, HttpTemplatePiece::Text(text) if !text.bytes().all(is_visible));
            if !template.pieces.iter().all(plain) {
                self.problem(&field, "expected visible ASCII characters");
            }
            if let Some(header) = self.header_name(&field, name) {
                headers.retain(|(other, _)| *other != header);
                headers.push((header, template));
            }
        }
        headers
    }

    pub(super) fn header_name(&mut self, field: &str, name: &str) -> Option<HeaderName> {
        let header = HeaderName::from_bytes(name.as_bytes()).ok();
        match &header {
            None => self.problem(field, &format!("{name:?} is not a header")),
            Some(header) if NOT_OURS.contains(&header.as_str()) => {
                self.problem(field, &format!("{header} is set by the connection; leave it out"));
            }
            Some(_) => {}
        }
        header
    }

    /// Slots, parts of the body and the key must be declared parameters.
    pub(super) fn declared<'a>(&mut self, tool: &'a http::HttpToolConfig, slots: impl Iterator<Item = &'a str>) {
        let properties = tool.input.as_ref().and_then(|schema| schema.0.get("properties"));
        let properties = properties.and_then(Value::as_object);
        let is_declared = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
        let in_body = match &tool.body {
            Some(RequestBody::Only(names)) => names.as_slice(),
            _ => &[],
        };
        let rest = in_body.iter().chain(&tool.key_parameter).map(String::as_str);
        let mut missing: Vec<&str> = slots.chain(rest).filter(|name| !is_declared(name)).collect();
        missing.sort_unstable();
        missing.dedup();
        for name in missing {
            self.problem("input", &format!("{name:?} is used and not declared; add it to `properties`"));
        }
    }

    fn template(&mut self, field: &str, text: &str) -> HttpTemplate {
        let template = HttpTemplate::read(text).unwrap_or_else(|message| {
            self.problem(field, &message);
            HttpTemplate { pieces: Vec::new() }
        });
        for name in template.secrets() {
            if !self.vault.has(name) {
                self.problem(field, &format!("there is no secret {name:?}; declare it under `secrets`"));
            }
        }
        template
    }
}

/// `.` and `..`, also as URLs may write them.
pub(super) fn is_dots(segment: &str) -> bool {
    let plain = segment.to_ascii_lowercase().replace("%2e", ".");
    plain == "." || plain == ".."
}

pub(super) fn is_visible(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}
