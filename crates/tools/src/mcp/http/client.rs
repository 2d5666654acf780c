//! The HTTP requests themselves. The library's own client reads responses of any size and reduces most refusals to a
//! text; here a response has a limit and a refusal keeps its status.

use futures::{StreamExt, TryStreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::SseStream;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

#[derive(Clone)]
pub(in crate::mcp) struct McpHttpClient {
    pub(super) requests: reqwest::Client,
    pub(super) answer_bytes_max: usize,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(in crate::mcp) enum Error {
    #[error("the request failed")]
    Request(#[from] reqwest::Error),
    #[error("it answered with HTTP status {status}")]
    Status { status: u16, retry_after: Option<String> },
    #[error("it sent an answer of more than {0} bytes")]
    TooLarge(usize),
    #[error("its answer is not a JSON-RPC message")]
    Unreadable,
    #[error("{0}")]
    Stream(String),
}

type Result<T> = std::result::Result<T, StreamableHttpError<Error>>;
type HttpHeaders = HashMap<HeaderName, HeaderValue>;

impl StreamableHttpClient for McpHttpClient {
    type Error = Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: HttpHeaders,
    ) -> Result<StreamableHttpPostResponse> {
        let has_session = session.is_some();
        let mut request = self
            .requests
            .post(&*uri)
            .headers(HeaderMap::from_iter(headers))
            .header(ACCEPT, format!("{JSON_MIME_TYPE}, {EVENT_STREAM_MIME_TYPE}"));
        if let Some(session) = session {
            request = request.header(HEADER_SESSION_ID, &*session);
        }
        let response = request.json(&message).send().await.map_err(Error::Request).map_err(client)?;
        self.read(&message, response, has_session).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HttpHeaders,
    ) -> Result<()> {
        self.requests.delete_session(uri, session, None, headers).await.map_err(of_library)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        headers: HttpHeaders,
    ) -> Result<BoxedSseResponse> {
        let limit = self.answer_bytes_max;
        self.requests
            .get_stream_with_max_sse_event_size(uri, session, last_event, None, headers, limit)
            .await
            .map_err(of_library)
    }
}

impl McpHttpClient {
    async fn read(
        &self,
        message: &ClientJsonRpcMessage,
        response: Response,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse> {
        let status = response.status();
        let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) || status.is_success() && !wants_answer {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if status == StatusCode::UNAUTHORIZED {
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(String::new())));
        }
        let session = text_of(&response, HEADER_SESSION_ID);
        let kind = text_of(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
        if status.is_success() && kind.starts_with(EVENT_STREAM_MIME_TYPE) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response), session));
        }
        let refusal = Error::Status { status: status.as_u16(), retry_after: text_of(&response, RETRY_AFTER.as_str()) };
        let answer: Option<ServerJsonRpcMessage> = if kind.starts_with(JSON_MIME_TYPE) {
            serde_json::from_slice(&self.bytes(response).await?).ok()
        } else {
            None
        };
        match answer {
            Some(answer) if status.is_success() => Ok(StreamableHttpPostResponse::Json(answer, session)),
            answer => match refused(message, status, answer) {
                Some(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
                None if status.is_success() => Err(client(Error::Unreadable)),
                None => Err(client(refusal)),
            },
        }
    }

    async fn bytes(&self, mut response: Response) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(Error::Request).map_err(client)? {
            if bytes.len() + chunk.len() > self.answer_bytes_max {
                return Err(client(Error::TooLarge(self.answer_bytes_max)));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// The events of one answer, progress included; together they may not be longer than an answer.
    fn events(&self, response: Response) -> BoxedSseResponse {
        let (limit, mut count) = (self.answer_bytes_max, 0);
        let bytes = response.bytes_stream().map_err(io::Error::other).and_then(move |chunk| {
            count += chunk.len();
            std::future::ready(if count <= limit { Ok(chunk) } else { Err(io::Error::other(Error::TooLarge(limit))) })
        });
        SseStream::from_bytes_stream(bytes).boxed()
    }
}

/// The JSON-RPC error in a refusal. A legacy server refuses the modern handshake with one, possibly under
/// another id, and must be understood.
fn refused(
    message: &ClientJsonRpcMessage,
    status: StatusCode,
    answer: Option<ServerJsonRpcMessage>,
) -> Option<ServerJsonRpcMessage> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    if matches!(status, StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS) {
        return None;
    }
    let is_greeting = matches!(request.request, ClientRequest::DiscoverRequest(_)) && status.is_client_error();
    match answer {
        Some(ServerJsonRpcMessage::Error(error)) if is_greeting => {
            Some(ServerJsonRpcMessage::error(error.error, Some(request.id.clone())))
        }
        Some(answer @ ServerJsonRpcMessage::Error(_)) => Some(answer),
        _ if is_greeting => {
            let error = ErrorData::invalid_request(format!("HTTP status {status}"), None);
            Some(ServerJsonRpcMessage::error(error, Some(request.id.clone())))
        }
        _ => None,
    }
}

fn text_of(response: &Response, header: &str) -> Option<String> {
    response.headers().get(header).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn client(error: Error) -> StreamableHttpError<Error> {
    StreamableHttpError::Client(error)
}

fn of_library(error: StreamableHttpError<reqwest::Error>) -> StreamableHttpError<Error> {
    match error {
        StreamableHttpError::Client(error) => client(Error::Request(error)),
        StreamableHttpError::ServerDoesNotSupportSse => StreamableHttpError::ServerDoesNotSupportSse,
        StreamableHttpError::AuthRequired(error) => StreamableHttpError::AuthRequired(error),
        error => client(Error::Stream(error.to_string())),
    }
}
