//! Reading an answer within its limits, also what it unpacks to, and what the result in it is.

use super::tool::Tool;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::write::GzDecoder;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use serde_json::{Value, json};
use std::io::{self, Write};

/// How many bytes may come out of one that came in.
const RATIO_MAX: usize = 100;
/// Small answers may be as repetitive as they like.
const RATIO_FREE: usize = 64 << 10;

/// Why there is no usable answer, although one came.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the answer unpacks to more than {RATIO_MAX} times its size")]
    Bomb,
    #[error("the answer is packed as {0:?}; only gzip is known here")]
    Packed(String),
    #[error("the answer is not proper gzip")]
    Gzip,
    #[error("the connection broke in the middle of the answer")]
    Broken,
    #[error("the answer says it is JSON and is not: {0}")]
    Json(serde_json::Error),
    #[error("the answer has nothing at {0:?}, where the result should be")]
    NoResult(String),
}

/// The whole body, unpacked.
pub(super) async fn read(response: &mut Response, bytes_max: usize) -> Result<Vec<u8>, Unusable> {
    let encoding = header(response, &CONTENT_ENCODING).to_ascii_lowercase();
    let mut unpacked = match encoding.trim() {
        "" | "identity" => Unpacked::Plain(Bounded::new(bytes_max, None)),
        "gzip" | "x-gzip" => Unpacked::Gzip(GzDecoder::new(Bounded::new(bytes_max, Some(RATIO_FREE)))),
        _ => return Err(Unusable::Packed(encoding)),
    };
    let mut came = false;
    while let Some(chunk) = response.chunk().await.map_err(|_| Unusable::Broken)? {
        came |= !chunk.is_empty();
        unpacked.take(&chunk)?;
    }
    // The answer to HEAD says how it would be packed, and is not there.
    if came { unpacked.finish() } else { Ok(Vec::new()) }
}

/// The result of a call that was done: JSON as it is, anything else with its status.
pub(super) fn result(tool: &Tool, status: u16, content_type: &str, bytes: &[u8]) -> Result<Value, Unusable> {
    let value = value(status, content_type, bytes)?;
    match &tool.result {
        None => Ok(value),
        Some(pointer) => value.pointer(pointer).cloned().ok_or_else(|| Unusable::NoResult(pointer.clone())),
    }
}

pub(super) fn content_type(response: &Response) -> String {
    let whole = header(response, &CONTENT_TYPE).to_ascii_lowercase();
    whole.split(';').next().unwrap_or_default().trim().to_owned()
}

pub(super) fn is_json(content_type: &str) -> bool {
    content_type == "application/json" || content_type == "text/json" || content_type.ends_with("+json")
}

fn value(status: u16, content_type: &str, bytes: &[u8]) -> Result<Value, Unusable> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(json!({}));
    }
    match serde_json::from_slice(bytes) {
        Ok(value) if content_type.is_empty() || is_json(content_type) => return Ok(value),
        Err(error) if is_json(content_type) => return Err(Unusable::Json(error)),
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

enum Unpacked {
    Plain(Bounded),
    Gzip(GzDecoder<Bounded>),
}

impl Unpacked {
    fn take(&mut self, chunk: &[u8]) -> Result<(), Unusable> {
        match self {
            Unpacked::Plain(bounded) => {
                bounded.write_all(chunk).map_err(|_| Unusable::TooLarge(bounded.bytes_max))
            }
            Unpacked::Gzip(decoder) => {
                if let Some(room) = &mut decoder.get_mut().room {
                    *room += chunk.len() * RATIO_MAX;
                }
                decoder.write_all(chunk).map_err(|_| decoder.get_ref().why())
            }
        }
    }

    fn finish(self) -> Result<Vec<u8>, Unusable> {
        match self {
            Unpacked::Plain(bounded) => Ok(bounded.bytes),
            Unpacked::Gzip(mut decoder) => match decoder.try_finish() {
                Ok(()) => Ok(std::mem::take(&mut decoder.get_mut().bytes)),
                Err(_) => Err(decoder.get_ref().why()),
            },
        }
    }
}

/// Takes no more than there is room for, so that nothing is unpacked that will be thrown away.
struct Bounded {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// What may come out of what came in so far, where something is unpacked.
    room: Option<usize>,
    full: Option<Full>,
}

#[derive(Clone, Copy)]
enum Full {
    Size,
    Ratio,
}

impl Bounded {
    fn new(bytes_max: usize, room: Option<usize>) -> Bounded {
        Bounded { bytes: Vec::new(), bytes_max, room, full: None }
    }

    /// Why unpacking stopped.
    fn why(&self) -> Unusable {
        match self.full {
            Some(Full::Size) => Unusable::TooLarge(self.bytes_max),
            Some(Full::Ratio) => Unusable::Bomb,
            None => Unusable::Gzip,
        }
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.bytes.len() + bytes.len();
        if length > self.bytes_max {
            self.full = Some(Full::Size);
        } else if self.room.is_some_and(|room| length > room) {
            self.full = Some(Full::Ratio);
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
