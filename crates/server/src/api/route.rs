//! What a route is: what it says of itself, what goes in and comes out, and what it does. Router, documents, rights and
//! limits all follow from it.

use crate::api::call::Call;
use crate::api::reply::Reply;
use crate::auth::Scope;
use crate::fault::Fault;
use axum::body::Body;
use axum::http::{Method, Response};
use futures::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) struct Route {
    pub(crate) about: About,
    pub(crate) query: fn(&mut SchemaGenerator) -> Schema,
    pub(crate) body: Option<fn(&mut SchemaGenerator) -> Schema>,
    pub(crate) output: Output,
    pub(crate) run: Run,
}

pub(crate) enum Output {
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Something else, or something without end.
    Other(&'static str),
}

type Run = Box<dyn Fn(Call, Value) -> BoxFuture<'static, Result<Response<Body>, Fault>> + Send + Sync>;

/// What a route says of itself.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) method: Method,
    /// Below `/api/v1`.
    pub(crate) path: &'static str,
    pub(crate) operation: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    /// `None`: anybody may ask.
    pub(crate) scope: Option<Scope>,
    pub(crate) success: &'static [u16],
    /// Statuses of refusals that do not follow from what it takes.
    pub(crate) refuses: &'static [u16],
    pub(crate) keyed: Keyed,
    pub(crate) body_bytes_max: usize,
}

/// What makes asking twice safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyed {
    /// It changes nothing, or nothing more the second time.
    No,
    /// The journal knows the key.
    Journal,
    /// The answer is kept under the key. A field of it that is shown once is not.
    Reply { without: Option<&'static str> },
}

impl About {
    fn new(method: Method, path: &'static str, operation: &'static str, summary: &'static str) -> About {
        let is_read = method == Method::GET;
        About {
            method,
            path,
            operation,
            tag: path.split('/').nth(1).unwrap_or_default(),
            summary,
            scope: Some(if is_read { Scope::Read } else { Scope::Operate }),
            success: &[200],
            refuses: &[],
            keyed: Keyed::No,
            body_bytes_max: crate::limits::BODY_BYTES_MAX,
        }
    }

    pub(crate) fn get(path: &'static str, operation: &'static str, summary: &'static str) -> About {
        About::new(Method::GET, path, operation, summary)
    }

    pub(crate) fn post(path: &'static str, operation: &'static str, summary: &'static str) -> About {
        About::new(Method::POST, path, operation, summary)
    }

    pub(crate) fn patch(path: &'static str, operation: &'static str, summary: &'static str) -> About {
        About::new(Method::PATCH, path, operation, summary)
    }

    pub(crate) fn delete(path: &'static str, operation: &'static str, summary: &'static str) -> About {
        About { success: &[204], ..About::new(Method::DELETE, path, operation, summary) }
    }

    pub(crate) fn scope(self, scope: Scope) -> About {
        About { scope: Some(scope), ..self }
    }

    pub(crate) fn open(self) -> About {
        About { scope: None, ..self }
    }

    pub(crate) fn success(self, success: &'static [u16]) -> About {
        About { success, ..self }
    }

    pub(crate) fn refuses(self, refuses: &'static [u16]) -> About {
        About { refuses, ..self }
    }

    pub(crate) fn keyed(self, keyed: Keyed) -> About {
        About { keyed, ..self }
    }

    pub(crate) fn tag(self, tag: &'static str) -> About {
        About { tag, ..self }
    }

    pub(crate) fn is_read(&self) -> bool {
        self.method == Method::GET
    }

    /// The names in braces.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

impl Route {
    pub(crate) fn new<Q, O, F>(about: About, run: impl Fn(Call, Q) -> F + Send + Sync + 'static) -> Route
    where
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema + Send + 'static,
        F: Future<Output = Result<Reply<O>, Fault>> + Send + 'static,
    {
        let run = move |call: Call, _: Value| -> BoxFuture<'static, Result<Response<Body>, Fault>> {
            match read_query(&call) {
                Ok(query) => Box::pin(told(run(call, query))),
                Err(fault) => Box::pin(std::future::ready(Err(fault))),
            }
        };
        let output = Output::Json(SchemaGenerator::subschema_for::<O>);
        Route { about, query: Q::json_schema, body: None, output, run: Box::new(run) }
    }

    pub(crate) fn with_body<B, O, F>(
        about: About,
        run: impl Fn(Call, B) -> F + Send + Sync + 'static,
    ) -> Route
    where
        B: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema + Send + 'static,
        F: Future<Output = Result<Reply<O>, Fault>> + Send + 'static,
    {
        let run = move |call: Call, body: Value| -> BoxFuture<'static, Result<Response<Body>, Fault>> {
            let input = read_query::<Nothing>(&call).and_then(|_| read_body(body));
            match input {
                Ok(body) => Box::pin(told(run(call, body))),
                Err(fault) => Box::pin(std::future::ready(Err(fault))),
            }
        };
        let (body, output) =
            (SchemaGenerator::subschema_for::<B>, Output::Json(SchemaGenerator::subschema_for::<O>));
        Route { about, query: Nothing::json_schema, body: Some(body), output, run: Box::new(run) }
    }

    /// One whose answer is no JSON value.
    pub(crate) fn other<Q, F>(
        about: About,
        media_type: &'static str,
        run: impl Fn(Call, Q) -> F + Send + Sync + 'static,
    ) -> Route
    where
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        F: Future<Output = Result<Response<Body>, Fault>> + Send + 'static,
    {
        let run = move |call: Call, _: Value| -> BoxFuture<'static, Result<Response<Body>, Fault>> {
            match read_query(&call) {
                Ok(query) => Box::pin(run(call, query)),
                Err(fault) => Box::pin(std::future::ready(Err(fault))),
            }
        };
        Route {
            about,
            query: Q::json_schema,
            body: None,
            output: Output::Other(media_type),
            run: Box::new(run),
        }
    }

    /// Every status of a refusal this route can answer with, in order.
    pub(crate) fn refusals(&self) -> Vec<u16> {
        let about = &self.about;
        // What was asked can be wrong, and Rutter can be at fault, busy or closing, whatever the route.
        let mut statuses = vec![400, 500, 503];
        statuses.extend(about.refuses);
        if about.scope.is_some() {
            statuses.extend([401, 403, 429]);
        }
        if about.parts().next().is_some() {
            statuses.push(404);
        }
        if self.body.is_some() {
            statuses.extend([413, 415]);
        }
        if about.keyed != Keyed::No {
            statuses.push(409);
        }
        statuses.sort_unstable();
        statuses.dedup();
        statuses
    }
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Route").field("about", &self.about).finish_non_exhaustive()
    }
}

/// A query that has no fields.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

async fn told<O: Serialize>(
    reply: impl Future<Output = Result<Reply<O>, Fault>>,
) -> Result<Response<Body>, Fault> {
    reply.await?.response().map_err(|error| Fault::new("server.internal", error.to_string()))
}

fn read_query<Q: DeserializeOwned>(call: &Call) -> Result<Q, Fault> {
    let query = axum::extract::Query::<Q>::try_from_uri(&call.uri);
    query.map(|query| query.0).map_err(|error| {
        Fault::new("server.arguments", error.body_text().to_lowercase())
            .hint("/api/v1/openapi.json says which fields the query may have")
    })
}

fn read_body<B: DeserializeOwned>(body: Value) -> Result<B, Fault> {
    serde_path_to_error::deserialize(body).map_err(|error| {
        let place = error.path().to_string();
        let place = if place == "." { String::new() } else { format!(" at {place}") };
        Fault::new("server.arguments", format!("the body is wrong{place}: {}", error.inner()))
            .hint("/api/v1/openapi.json has the schema of the body; nothing was done")
    })
}
