//! A route definition: metadata, types and handler. Router, documents, scopes and limits are derived from it.

use crate::idempotent_replies::Idempotency;
use crate::reply::ApiReply;
use crate::request::ApiRequest;
use axum::body::Body;
use axum::http::{Method, Response};
use futures::future::BoxFuture;
use rutter_app::error::AppError;
use rutter_app::rights::Operation;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The base path of the routes.
pub(crate) const BASE: &str = "/api/v1";

pub(crate) struct ApiRoute {
    pub(crate) about: RouteSpec,
    pub(crate) query: fn(&mut SchemaGenerator) -> Schema,
    pub(crate) body: Option<fn(&mut SchemaGenerator) -> Schema>,
    pub(crate) output: RouteOutput,
    pub(crate) run: RouteHandler,
}

pub(crate) enum RouteOutput {
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Another media type, or an endless stream.
    Other(&'static str),
}

type RouteHandler =
    Box<dyn Fn(ApiRequest, Value) -> BoxFuture<'static, Result<Response<Body>, AppError>> + Send + Sync>;

/// The metadata of a route.
#[derive(Clone, Debug)]
pub(crate) struct RouteSpec {
    pub(crate) method: Method,
    /// Below `/api/v1`.
    pub(crate) path: &'static str,
    pub(crate) operation: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    /// What the caller must be allowed to do; `None`: public. A command to an execution also needs the scope of its verb.
    pub(crate) right: Option<Operation>,
    pub(crate) success: &'static [u16],
    /// Statuses of refusals that do not follow from the other metadata.
    pub(crate) refuses: &'static [u16],
    pub(crate) idempotency: Idempotency,
    pub(crate) body_bytes_max: usize,
}

impl RouteSpec {
    fn new(method: Method, path: &'static str, operation: &'static str, summary: &'static str) -> RouteSpec {
        RouteSpec {
            method,
            path,
            operation,
            tag: path.split('/').nth(1).unwrap_or_default(),
            summary,
            right: Some(Operation::Read),
            success: &[200],
            refuses: &[],
            idempotency: Idempotency::No,
            body_bytes_max: rutter_app::limits::BODY_BYTES_MAX,
        }
    }

    pub(crate) fn get(path: &'static str, operation: &'static str, summary: &'static str) -> RouteSpec {
        RouteSpec::new(Method::GET, path, operation, summary)
    }

    pub(crate) fn post(path: &'static str, operation: &'static str, summary: &'static str) -> RouteSpec {
        RouteSpec::new(Method::POST, path, operation, summary)
    }

    pub(crate) fn patch(path: &'static str, operation: &'static str, summary: &'static str) -> RouteSpec {
        RouteSpec::new(Method::PATCH, path, operation, summary)
    }

    pub(crate) fn delete(path: &'static str, operation: &'static str, summary: &'static str) -> RouteSpec {
        RouteSpec { success: &[204], ..RouteSpec::new(Method::DELETE, path, operation, summary) }
    }

    pub(crate) fn right(self, operation: Operation) -> RouteSpec {
        RouteSpec { right: Some(operation), ..self }
    }

    pub(crate) fn public(self) -> RouteSpec {
        RouteSpec { right: None, ..self }
    }

    pub(crate) fn success(self, success: &'static [u16]) -> RouteSpec {
        RouteSpec { success, ..self }
    }

    pub(crate) fn refuses(self, refuses: &'static [u16]) -> RouteSpec {
        RouteSpec { refuses, ..self }
    }

    pub(crate) fn idempotency(self, keyed: Idempotency) -> RouteSpec {
        RouteSpec { idempotency: keyed, ..self }
    }

    pub(crate) fn tag(self, tag: &'static str) -> RouteSpec {
        RouteSpec { tag, ..self }
    }

    pub(crate) fn is_read(&self) -> bool {
        self.method == Method::GET
    }

    /// The path parameters.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

impl ApiRoute {
    pub(crate) fn new<Q, O, F>(about: RouteSpec, run: impl Fn(ApiRequest, Q) -> F + Send + Sync + 'static) -> ApiRoute
    where
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema + Send + 'static,
        F: Future<Output = Result<ApiReply<O>, AppError>> + Send + 'static,
    {
        let run = move |call: ApiRequest, _: Value| -> BoxFuture<'static, Result<Response<Body>, AppError>> {
            match read_query(&call) {
                Ok(query) => Box::pin(json_response(run(call, query))),
                Err(error) => Box::pin(std::future::ready(Err(error))),
            }
        };
        let output = RouteOutput::Json(SchemaGenerator::subschema_for::<O>);
        ApiRoute { about, query: Q::json_schema, body: None, output, run: Box::new(run) }
    }

    pub(crate) fn with_body<B, O, F>(
        about: RouteSpec,
        run: impl Fn(ApiRequest, B) -> F + Send + Sync + 'static,
    ) -> ApiRoute
    where
        B: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema + Send + 'static,
        F: Future<Output = Result<ApiReply<O>, AppError>> + Send + 'static,
    {
        let run = move |call: ApiRequest, body: Value| -> BoxFuture<'static, Result<Response<Body>, AppError>> {
            let input = read_query::<NoParameters>(&call).and_then(|_| read_body(body));
            match input {
                Ok(body) => Box::pin(json_response(run(call, body))),
                Err(error) => Box::pin(std::future::ready(Err(error))),
            }
        };
        let (body, output) =
            (SchemaGenerator::subschema_for::<B>, RouteOutput::Json(SchemaGenerator::subschema_for::<O>));
        ApiRoute { about, query: NoParameters::json_schema, body: Some(body), output, run: Box::new(run) }
    }

    /// A route whose response is not a JSON value.
    pub(crate) fn other<Q, F>(
        about: RouteSpec,
        media_type: &'static str,
        run: impl Fn(ApiRequest, Q) -> F + Send + Sync + 'static,
    ) -> ApiRoute
    where
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        F: Future<Output = Result<Response<Body>, AppError>> + Send + 'static,
    {
        let run = move |call: ApiRequest, _: Value| -> BoxFuture<'static, Result<Response<Body>, AppError>> {
            match read_query(&call) {
                Ok(query) => Box::pin(run(call, query)),
                Err(error) => Box::pin(std::future::ready(Err(error))),
            }
        };
        ApiRoute {
            about,
            query: Q::json_schema,
            body: None,
            output: RouteOutput::Other(media_type),
            run: Box::new(run),
        }
    }

    /// Every status of a refusal this route can return, in order.
    pub(crate) fn refusals(&self) -> Vec<u16> {
        let about = &self.about;
        // Any request can be invalid, and the server can fail, be busy or shut down.
        let mut statuses = vec![400, 500, 503];
        statuses.extend(about.refuses);
        if about.right.is_some() {
            statuses.extend([401, 403, 429]);
        }
        if about.parts().next().is_some() {
            statuses.push(404);
        }
        if self.body.is_some() {
            statuses.extend([413, 415]);
        }
        if about.idempotency != Idempotency::No {
            statuses.push(409);
        }
        statuses.sort_unstable();
        statuses.dedup();
        statuses
    }
}

impl std::fmt::Debug for ApiRoute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiRoute").field("about", &self.about).finish_non_exhaustive()
    }
}

/// A query that has no fields.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoParameters {}

async fn json_response<O: Serialize>(
    reply: impl Future<Output = Result<ApiReply<O>, AppError>>,
) -> Result<Response<Body>, AppError> {
    reply.await?.response().map_err(|error| AppError::new("server.internal", error.to_string()))
}

fn read_query<Q: DeserializeOwned>(call: &ApiRequest) -> Result<Q, AppError> {
    let query = axum::extract::Query::<Q>::try_from_uri(&call.uri);
    query.map(|query| query.0).map_err(|error| {
        AppError::new("server.arguments", error.body_text().to_lowercase())
            .hint("/api/v1/openapi.json has the parameters of the query")
    })
}

fn read_body<B: DeserializeOwned>(body: Value) -> Result<B, AppError> {
    serde_path_to_error::deserialize(body).map_err(|error| {
        let place = error.path().to_string();
        let place = if place == "." { String::new() } else { format!(" at {place}") };
        AppError::new("server.arguments", format!("invalid body{place}: {}", error.inner()))
            .hint("/api/v1/openapi.json has the schema of the body; nothing was done")
    })
}
