//! Reads a response within limits, also when it is compressed, and extracts the result.

use super::tool::HttpTool;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::write::GzDecoder;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use serde_json::{Value, json};
use std::io::{self, Write};

/// The highest compression ratio of a response.
const RATIO_MAX: usize = 100;
/// Responses up to this size may have any ratio.
const RATIO_FREE: usize = 64 << 10;

/// Why a response cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnusableResponse {
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the answer unpacks to more than {RATIO_MAX} times its size")]
    Bomb,
    #[error("the answer is encoded as {0:?}; only gzip is supported")]
    Packed(String),
    #[error("the answer is not valid gzip")]
    Gzip,
    #[error("the connection broke in the middle of the answer")]
    Broken,
    #[error("the answer claims to be JSON but is not: {0}")]
    Json(serde_json::Error),
    #[error("the answer has nothing at {0:?}, where the result should be")]
    NoResult(String),
}

/// The whole body, unpacked.
pub(super) async fn read(response: &mut Response, bytes_max: usize) -> Result<Vec<u8>, UnusableResponse> {
    let encoding = header(response, &CONTENT_ENCODING).to_ascii_lowercase();
    let mut unpacked = match encoding.trim() {
        "" | "identity" => BodyDecoder::Plain(BoundedBuffer::new(bytes_max, None)),
        "gzip" | "x-gzip" => BodyDecoder::Gzip(GzDecoder::new(BoundedBuffer::new(bytes_max, Some(RATIO_FREE)))),
        _ => return Err(UnusableResponse::Packed(encoding)),
    };
    let mut came = false;
    while let Some(chunk) = response.chunk().await.map_err(|_| UnusableResponse::Broken)? {
        came |= !chunk.is_empty();
        unpacked.take(&chunk)?;
    }
    // A response to HEAD states an encoding but has no body.
    if came { unpacked.finish() } else { Ok(Vec::new()) }
}

/// The result of a call that was done: JSON as it is, anything else with its status.
pub(super) fn result(
    tool: &HttpTool,
    status: u16,
    content_type: &str,
    bytes: &[u8],
) -> Result<Value, UnusableResponse> {
    let value = value(status, content_type, bytes)?;
    match &tool.result {
        None => Ok(value),
        Some(pointer) => value.pointer(pointer).cloned().ok_or_else(|| UnusableResponse::NoResult(pointer.clone())),
    }
}

pub(super) fn content_type(response: &Response) -> String {
    let whole = header(response, &CONTENT_TYPE).to_ascii_lowercase();
    whole.split(';').next().unwrap_or_default().trim().to_owned()
}

pub(super) fn is_json(content_type: &str) -> bool {
    content_type == "application/json" || content_type == "text/json" || content_type.ends_with("+json")
}

fn value(status: u16, content_type: &str, bytes: &[u8]) -> Result<Value, UnusableResponse> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(json!({}));
    }
    match serde_json::from_slice(bytes) {
        Ok(value) if content_type.is_empty() || is_json(content_type) => return Ok(value),
        Err(error) if is_json(content_type) => return Err(UnusableResponse::Json(error)),
        Ok(_) | Err(_) => {}
    }
    Ok(match std::str::from_utf8(bytes) {
        Ok(text) => json!({"status": status, "text": text}),
        Err(_) => json!({"status": status, "base64": BASE64_STANDARD.encode(bytes)}),
    })
}

fn header<'a>(response: &'a Response, name: &HeaderName) -> &'a str {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

enum BodyDecoder {
    Plain(BoundedBuffer),
    Gzip(GzDecoder<BoundedBuffer>),
}

impl BodyDecoder {
    fn take(&mut self, chunk: &[u8]) -> Result<(), UnusableResponse> {
        match self {
            BodyDecoder::Plain(bounded) => {
                bounded.write_all(chunk).map_err(|_| UnusableResponse::TooLarge(bounded.bytes_max))
            }
            BodyDecoder::Gzip(decoder) => {
                if let Some(room) = &mut decoder.get_mut().room {
                    *room += chunk.len() * RATIO_MAX;
                }
                decoder.write_all(chunk).map_err(|_| decoder.get_ref().why())
            }
        }
    }

    fn finish(self) -> Result<Vec<u8>, UnusableResponse> {
        match self {
            BodyDecoder::Plain(bounded) => Ok(bounded.bytes),
            BodyDecoder::Gzip(mut decoder) => match decoder.try_finish() {
                Ok(()) => Ok(std::mem::take(&mut decoder.get_mut().bytes)),
                Err(_) => Err(decoder.get_ref().why()),
            },
        }
    }
}

/// A buffer with a limit, so that nothing is decompressed that would be discarded.
struct BoundedBuffer {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// How much the bytes so far may decompress to, if the body is compressed.
    room: Option<usize>,
    full: Option<BufferOverflow>,
}

#[derive(Clone, Copy)]
enum BufferOverflow {
    Size,
    Ratio,
}

impl BoundedBuffer {
    fn new(bytes_max: usize, room: Option<usize>) -> BoundedBuffer {
        BoundedBuffer { bytes: Vec::new(), bytes_max, room, full: None }
    }

    /// Why decompression stopped.
    fn why(&self) -> UnusableResponse {
        match self.full {
            Some(BufferOverflow::Size) => UnusableResponse::TooLarge(self.bytes_max),
            Some(BufferOverflow::Ratio) => UnusableResponse::Bomb,
            None => UnusableResponse::Gzip,
        }
    }
}

impl Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.bytes.len() + bytes.len();
        if length > self.bytes_max {
            self.full = Some(BufferOverflow::Size);
        } else if self.room.is_some_and(|room| length > room) {
            self.full = Some(BufferOverflow::Ratio);
        }
        if self.full.is_some() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
