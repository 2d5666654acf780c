//! Compression of entries and payloads. It is lossless: hashes are computed over the uncompressed bytes.
//!
//! Entries are short and alike, so they are compressed with a dictionary of typical entries. Hashes do not compress,
//! so they are first written as bytes instead of hex digits. The dictionary and the hash marker are part of the
//! database format: they never change, and better ones would need a magic number of their own.

use memchr::memchr;
use rutter_core::hash::Hash;
use std::borrow::Cow;
use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};

/// Typical entries, the most frequent last, where references to them are shortest.
const ENTRIES: &[u8] = include_bytes!("compress/entries.v1.txt");

/// The magic number of a zstd frame. No JSON text begins with it.
const MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Fast: once its hashes are bytes, most of an entry is found in the dictionary.
const LEVEL: i32 = -1;
const BLOB_LEVEL: i32 = 3;

/// Shorter payloads gain nothing.
const PAYLOAD_BYTES_MIN: usize = 256;

/// The stored bytes are not a frame that this module wrote.
#[derive(Debug, thiserror::Error)]
#[error("stored bytes cannot be unpacked: {0}")]
pub struct DamagedBytes(String);

/// Marks a hash. It never occurs in JSON, where control characters are escaped.
const HASH: u8 = 1;
const HASH_BYTES: usize = 32;
const HEX_DIGITS: usize = 2 * HASH_BYTES;

thread_local! {
    // Creating one costs as much as compressing a thousand entries.
    static PACK: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static UNPACK: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

pub fn pack_entry(bytes: &[u8]) -> Vec<u8> {
    let packed = PACK.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = Compressor::with_dictionary(LEVEL, &shortened(ENTRIES)?).ok();
        }
        slot.as_mut()?.compress(&shortened(bytes)?).ok()
    });
    smaller(packed, bytes)
}

pub fn unpack_entry(bytes: &[u8], length_max: usize) -> Result<Cow<'_, [u8]>, DamagedBytes> {
    if !bytes.starts_with(MAGIC) {
        return Ok(Cow::Borrowed(bytes));
    }
    UNPACK.with_borrow_mut(|slot| {
        if slot.is_none() {
            let typical =
                shortened(ENTRIES).ok_or_else(|| DamagedBytes("the typical entries are damaged".to_owned()))?;
            *slot = Some(Decompressor::with_dictionary(&typical).map_err(damaged)?);
        }
        let unpack = slot.as_mut().expect("the decompressor was just created");
        let short = unpack.decompress(bytes, capacity(bytes, length_max)).map_err(damaged)?;
        lengthened(&short, length_max).map(Cow::Owned)
    })
}

/// Writes hashes as bytes; `None` for a text that contains the hash marker itself.
fn shortened(text: &[u8]) -> Option<Vec<u8>> {
    if memchr(HASH, text).is_some() {
        return None;
    }
    let mut short = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(quote) = memchr(b'"', rest) {
        let (before, from) = rest.split_at(quote);
        short.extend_from_slice(before);
        match hash_in_quotes(from) {
            Some(hash) => {
                short.push(HASH);
                short.extend_from_slice(&hash.0);
                rest = &from[HEX_DIGITS + 2..];
            }
            None => {
                short.push(b'"');
                rest = &from[1..];
            }
        }
    }
    short.extend_from_slice(rest);
    Some(short)
}

fn hash_in_quotes(text: &[u8]) -> Option<Hash> {
    // The cheap check first: most strings are shorter or longer than a hash.
    let digits = text.get(1..=HEX_DIGITS).filter(|_| text.get(HEX_DIGITS + 1) == Some(&b'"'))?;
    Hash::parse(std::str::from_utf8(digits).ok()?)
}

fn lengthened(short: &[u8], length_max: usize) -> Result<Vec<u8>, DamagedBytes> {
    let cut = || DamagedBytes("it ends within a hash".to_owned());
    let mut text = Vec::with_capacity(short.len() * 2);
    let mut rest = short;
    while let Some(at) = memchr(HASH, rest) {
        text.extend_from_slice(&rest[..at]);
        let hash: [u8; HASH_BYTES] =
            rest.get(at + 1..=at + HASH_BYTES).and_then(|hash| hash.try_into().ok()).ok_or_else(cut)?;
        text.push(b'"');
        text.extend_from_slice(&Hash(hash).hex());
        text.push(b'"');
        rest = &rest[at + 1 + HASH_BYTES..];
    }
    text.extend_from_slice(rest);
    match text.len() > length_max {
        true => Err(DamagedBytes("it is longer than an entry may be".to_owned())),
        false => Ok(text),
    }
}

/// Packs a payload, a plan's source, or anything else the dictionary does not fit.
pub fn pack(bytes: &[u8]) -> Vec<u8> {
    match bytes.len() < PAYLOAD_BYTES_MIN && !bytes.starts_with(MAGIC) {
        true => bytes.to_vec(),
        false => smaller(zstd::bulk::compress(bytes, BLOB_LEVEL).ok(), bytes),
    }
}

pub fn unpack(bytes: &[u8], length_max: usize) -> Result<Cow<'_, [u8]>, DamagedBytes> {
    match bytes.starts_with(MAGIC) {
        false => Ok(Cow::Borrowed(bytes)),
        true => {
            let length = capacity(bytes, length_max);
            zstd::bulk::decompress(bytes, length).map(Cow::Owned).map_err(damaged)
        }
    }
}

/// The unpacked length, as the frame states it.
pub fn length(bytes: &[u8]) -> usize {
    match bytes.starts_with(MAGIC) {
        false => bytes.len(),
        true => capacity(bytes, usize::MAX),
    }
}

/// Returns the shorter form. Bytes that begin with the magic number are always packed: otherwise unpacking would take
/// them for a frame.
fn smaller(packed: Option<Vec<u8>>, bytes: &[u8]) -> Vec<u8> {
    match packed {
        Some(packed) if packed.len() < bytes.len() || bytes.starts_with(MAGIC) => packed,
        _ => bytes.to_vec(),
    }
}

/// The length the frame states, capped at `length_max`: a false header must not exhaust memory.
fn capacity(bytes: &[u8], length_max: usize) -> usize {
    let stated = zstd::zstd_safe::get_frame_content_size(bytes).ok().flatten();
    stated.and_then(|length| usize::try_from(length).ok()).map_or(length_max, |length| length.min(length_max))
}

fn damaged(error: std::io::Error) -> DamagedBytes {
    DamagedBytes(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 1 << 20;

    #[test]
    fn unpacking_returns_the_packed_bytes() {
        let long = "x".repeat(100_000);
        let hashes = format!("{{\"a\":\"{}\",\"b\":\"{}\"}}", "0f".repeat(32), "01".repeat(32));
        for text in [
            &hashes,
            "\"0f0f",
            "\"\"\"",
            "\u{1}",
            &format!("\"{}", "ab".repeat(32)),
            &format!("\"{}\"", "AB".repeat(32)),
        ] {
            assert_eq!(&*unpack_entry(&pack_entry(text.as_bytes()), MAX).unwrap(), text.as_bytes());
        }
        let texts: [&[u8]; 6] = [b"", b"{}", b"(\xb5\x2f\xfd not packed", long.as_bytes(), ENTRIES, &[0, 255, 1]];
        for text in texts {
            assert_eq!(&*unpack_entry(&pack_entry(text), MAX).unwrap(), text);
            assert_eq!(&*unpack(&pack(text), MAX).unwrap(), text);
            assert_eq!(length(&pack(text)), text.len());
        }
        assert!(pack(long.as_bytes()).len() < 100);
    }

    #[test]
    fn a_typical_entry_becomes_a_fraction() {
        let entry = ENTRIES.split(|byte| *byte == b'\n').next_back().unwrap();
        assert!(pack_entry(entry).len() * 3 < entry.len());
    }

    #[test]
    fn damaged_bytes_are_an_error_and_cost_little() {
        let mut packed = pack(&vec![b'a'; 50_000]);
        for at in 4..packed.len() {
            packed[at] ^= 0x55;
            let _ = unpack(&packed, MAX);
            packed[at] ^= 0x55;
        }
        packed.truncate(packed.len() - 1);
        assert!(unpack(&packed, MAX).is_err());
        assert!(unpack(&pack(&vec![b'a'; 50_000]), 49_999).is_err(), "longer than allowed");
    }
}
