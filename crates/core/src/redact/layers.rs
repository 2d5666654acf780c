//! A text with its escapes decoded, and the source position of each part.

use std::ops::Range;

/// How many levels of nested escapes are decoded, as in JSON inside JSON.
const LAYERS_MAX: usize = 3;

/// Decodes the escape at the front: appends the decoded bytes and returns the length of the escape.
type UnescapeRule = fn(&[u8], &mut Vec<u8>) -> Option<usize>;

/// One kind of escape decoded repeatedly; each layer is decoded from the one before.
pub(super) struct DecodedLayers {
    layers: Vec<DecodedLayer>,
}

struct DecodedLayer {
    bytes: Vec<u8>,
    /// Positions in this layer and in its source; between two of them both advance alike.
    shifts: Vec<(usize, usize)>,
}

impl DecodedLayers {
    pub(super) fn without_percents(bytes: &[u8]) -> DecodedLayers {
        DecodedLayers::read(bytes, b'%', undo_percent)
    }

    pub(super) fn without_backslashes(bytes: &[u8]) -> DecodedLayers {
        DecodedLayers::read(bytes, b'\\', undo_backslash)
    }

    /// The number and the bytes of each layer. Empty if the text has no such escape.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.layers.iter().enumerate().map(|(number, layer)| (number, layer.bytes.as_slice()))
    }

    /// The range of the text that a range of a layer came from. It must not split a decoded escape.
    pub(super) fn origin(&self, number: usize, range: Range<usize>) -> Range<usize> {
        let origin = |at| self.layers[..=number].iter().rev().fold(at, |at, layer| layer.origin(at));
        origin(range.start)..origin(range.end)
    }

    fn read(bytes: &[u8], mark: u8, undo: UnescapeRule) -> DecodedLayers {
        let mut layers: Vec<DecodedLayer> = Vec::new();
        while layers.len() < LAYERS_MAX {
            let below = layers.last().map_or(bytes, |layer| &layer.bytes);
            let Some(layer) = DecodedLayer::read(below, mark, undo) else { break };
            layers.push(layer);
        }
        DecodedLayers { layers }
    }
}

impl DecodedLayer {
    fn read(bytes: &[u8], mark: u8, undo: UnescapeRule) -> Option<DecodedLayer> {
        if !bytes.contains(&mark) {
            return None;
        }
        let mut layer = DecodedLayer { bytes: Vec::with_capacity(bytes.len()), shifts: Vec::new() };
        let mut at = 0;
        while at < bytes.len() {
            let start = layer.bytes.len();
            let length = if bytes[at] == mark { undo(&bytes[at..], &mut layer.bytes) } else { None };
            if let Some(length) = length {
                layer.shifts.push((start, at));
                at += length;
                layer.shifts.push((layer.bytes.len(), at));
            } else {
                layer.bytes.push(bytes[at]);
                at += 1;
            }
        }
        (!layer.shifts.is_empty()).then_some(layer)
    }

    fn origin(&self, at: usize) -> usize {
        let next = self.shifts.partition_point(|(position, _)| *position <= at);
        let (position, origin) = next.checked_sub(1).map_or((0, 0), |last| self.shifts[last]);
        origin + (at - position)
    }
}

fn undo_percent(bytes: &[u8], undone: &mut Vec<u8>) -> Option<usize> {
    let number = hex_number(bytes.get(1..3)?)?;
    undone.push(u8::try_from(number).ok()?);
    Some(3)
}

/// The escapes of JSON strings.
fn undo_backslash(bytes: &[u8], undone: &mut Vec<u8>) -> Option<usize> {
    let (c, length) = match bytes.get(1)? {
        plain @ (b'"' | b'\\' | b'/') => (char::from(*plain), 2),
        b'b' => ('\u{8}', 2),
        b'f' => ('\u{c}', 2),
        b'n' => ('\n', 2),
        b'r' => ('\r', 2),
        b't' => ('\t', 2),
        b'u' => {
            let first = utf16_unit(bytes)?;
            match char::from_u32(u32::from(first)) {
                Some(c) => (c, 6),
                // A high surrogate; the low surrogate follows.
                None => (char::decode_utf16([first, utf16_unit(&bytes[6..])?]).next()?.ok()?, 12),
            }
        }
        _ => return None,
    };
    undone.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    Some(length)
}

/// The number in `\u00e9`.
fn utf16_unit(bytes: &[u8]) -> Option<u16> {
    hex_number(bytes.strip_prefix(b"\\u")?.get(..4)?)
}

fn hex_number(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0, |number, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(number << 4 | u16::try_from(digit).ok()?)
    })
}
