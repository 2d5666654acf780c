//! Making entries and payloads small. What comes out is, byte for byte, what went in: hashes are over that.
//!
//! Entries are short and alike, so they are compressed against a text of typical entries. That text is part
//! of the format: it never changes, a better one would get a number of its own.

use std::borrow::Cow;
use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};

/// Typical entries, the most frequent last, where references to them are shortest.
const ENTRIES: &[u8] = include_bytes!("compress/entries.v1.txt");

/// Every compressed text begins so, and no JSON text does.
const MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const LEVEL: i32 = 1;
const BLOB_LEVEL: i32 = 3;

/// Shorter payloads gain nothing.
const PAYLOAD_BYTES_MIN: usize = 256;

/// What is stored is not what was ever compressed here.
#[derive(Debug, thiserror::Error)]
#[error("stored bytes cannot be unpacked: {0}")]
pub struct Damaged(String);

thread_local! {
    // Making one costs as much as compressing a thousand entries.
    static PACK: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static UNPACK: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

pub fn pack_entry(bytes: &[u8]) -> Vec<u8> {
    let packed = PACK.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = Compressor::with_dictionary(LEVEL, ENTRIES).ok();
        }
        slot.as_mut().and_then(|compressor| compressor.compress(bytes).ok())
    });
    smaller(packed, bytes)
}

pub fn unpack_entry(bytes: &[u8], length_max: usize) -> Result<Cow<'_, [u8]>, Damaged> {
    if !bytes.starts_with(MAGIC) {
        return Ok(Cow::Borrowed(bytes));
    }
    UNPACK.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = Some(Decompressor::with_dictionary(ENTRIES).map_err(damaged)?);
        }
        let unpack = slot.as_mut().expect("it was just made");
        unpack.decompress(bytes, capacity(bytes, length_max)).map(Cow::Owned).map_err(damaged)
    })
}

/// Packs a payload, a plan's source, or anything else that is not alike.
pub fn pack(bytes: &[u8]) -> Vec<u8> {
    match bytes.len() < PAYLOAD_BYTES_MIN && !bytes.starts_with(MAGIC) {
        true => bytes.to_vec(),
        false => smaller(zstd::bulk::compress(bytes, BLOB_LEVEL).ok(), bytes),
    }
}

pub fn unpack(bytes: &[u8], length_max: usize) -> Result<Cow<'_, [u8]>, Damaged> {
    match bytes.starts_with(MAGIC) {
        false => Ok(Cow::Borrowed(bytes)),
        true => {
            let length = capacity(bytes, length_max);
            zstd::bulk::decompress(bytes, length).map(Cow::Owned).map_err(damaged)
        }
    }
}

/// How long what was packed is, as far as it says so itself.
pub fn length(bytes: &[u8]) -> usize {
    match bytes.starts_with(MAGIC) {
        false => bytes.len(),
        true => capacity(bytes, usize::MAX),
    }
}

/// A text that happens to begin like a packed one must be packed, or it could not be told apart.
fn smaller(packed: Option<Vec<u8>>, bytes: &[u8]) -> Vec<u8> {
    match packed {
        Some(packed) if packed.len() < bytes.len() || bytes.starts_with(MAGIC) => packed,
        _ => bytes.to_vec(),
    }
}

/// The frame says how long its content is; a lie costs no more than the longest there may be.
fn capacity(bytes: &[u8], length_max: usize) -> usize {
    let stated = zstd::zstd_safe::get_frame_content_size(bytes).ok().flatten();
    stated.and_then(|length| usize::try_from(length).ok()).map_or(length_max, |length| length.min(length_max))
}

fn damaged(error: std::io::Error) -> Damaged {
    Damaged(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 1 << 20;

    #[test]
    fn what_comes_out_is_what_went_in() {
        let long = "x".repeat(100_000);
        let texts: [&[u8]; 6] =
            [b"", b"{}", b"(\xb5\x2f\xfd not packed", long.as_bytes(), ENTRIES, &[0, 255, 1]];
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
