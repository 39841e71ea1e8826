//! jsonb, "JSON Types" in the PostgreSQL manual.

use crate::{CAPACITY, Numeric, Text, numeric};

/// Where a text goes that can be of any length.
pub trait Sink {
    /// Appends bytes.
    fn put(&mut self, bytes: &[u8]);

    /// Appends bytes with others before and behind them. An implementation may look for room only once.
    #[inline]
    fn put_between<const BEFORE: usize, const BEHIND: usize>(
        &mut self,
        before: &[u8; BEFORE],
        bytes: &[u8],
        behind: &[u8; BEHIND],
    ) {
        self.put(before);
        self.put(bytes);
        self.put(behind);
    }
}

/// No text is longer than so many times the stored value: most is made of a number, at most [`CAPACITY`] bytes from
/// at least ten.
pub const JSONB_GROWTH: usize = 32;

/// How deep arrays and objects may be within each other. The server can go deeper, without recursion.
const MAXIMUM_DEPTH: u32 = 64;

/// What the first word of an array or object says besides the number of its elements.
mod container {
    pub const COUNT: u32 = 0x0FFF_FFFF;
    pub const SCALAR: u32 = 0x1000_0000;
    pub const OBJECT: u32 = 0x2000_0000;
    pub const ARRAY: u32 = 0x4000_0000;
}

/// The word that stands for each element.
mod entry {
    /// Where the element ends, or how long it is.
    pub const PLACE: u32 = 0x0FFF_FFFF;
    /// `PLACE` is where it ends.
    pub const HAS_END: u32 = 0x8000_0000;
    pub const KIND: u32 = 0x7000_0000;

    pub const STRING: u32 = 0x0000_0000;
    pub const NUMERIC: u32 = 0x1000_0000;
    pub const FALSE: u32 = 0x2000_0000;
    pub const TRUE: u32 = 0x3000_0000;
    pub const NULL: u32 = 0x4000_0000;
    pub const CONTAINER: u32 = 0x5000_0000;
}

/// A jsonb in the form in which it is stored, without its varlena header, as `jsonb_out` gives it.
///
/// Returns `false` if it is left to the server: if it is too deep, has a number that is too long for a [`Text`], or
/// isn't a jsonb. Then some of it may have been appended.
#[inline]
pub fn jsonb(sink: &mut impl Sink, stored: &[u8]) -> bool {
    put_container(sink, stored, MAXIMUM_DEPTH).is_some()
}

fn word(bytes: &[u8; 4]) -> u32 {
    u32::from_ne_bytes(*bytes)
}

/// Where the element of an entry ends that begins at `position`.
#[inline]
fn end(entry: u32, position: usize) -> usize {
    let place = (entry & entry::PLACE) as usize;
    if entry & entry::HAS_END != 0 { place } else { position + place }
}

/// The elements of a container, or a part of them: the keys or the values of an object.
#[derive(Clone, Copy)]
struct Elements<'a> {
    entries: &'a [[u8; 4]],
    data: &'a [u8],
    /// Where in the data the next one begins.
    position: usize,
}

/// An element: what it is, and its bytes.
#[derive(Clone, Copy)]
struct Element<'a> {
    kind: u32,
    /// Without what comes before an aligned one.
    bytes: &'a [u8],
}

impl<'a> Elements<'a> {
    /// Takes the first one off; `Some(None)` if there is none left, and `None` if it is outside of the data.
    #[inline]
    fn next(&mut self) -> Option<Option<Element<'a>>> {
        let Some((first, rest)) = self.entries.split_first() else { return Some(None) };
        let first = word(first);
        let end = end(first, self.position);
        let kind = first & entry::KIND;
        let start = match kind {
            entry::NUMERIC | entry::CONTAINER => self.position.next_multiple_of(4),
            _ => self.position,
        };
        let bytes = self.data.get(start..end)?;
        self.entries = rest;
        self.position = end;
        Some(Some(Element { kind, bytes }))
    }

    /// Where the last one ends.
    fn end(self) -> usize {
        self.entries.iter().map(word).fold(self.position, |position, entry| end(entry, position))
    }
}

fn put_container(sink: &mut impl Sink, stored: &[u8], depth: u32) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    let (header, rest) = stored.split_first_chunk::<4>()?;
    let header = word(header);
    let count = (header & container::COUNT) as usize;
    let is_object = header & container::OBJECT != 0;
    if !is_object && header & container::ARRAY == 0 {
        return None;
    }
    let words = if is_object { 2 * count } else { count };
    let (entries, data) = rest.split_at_checked(4 * words)?;
    let entries = entries.as_chunks::<4>().0;

    if is_object {
        let (keys, values) = entries.split_at(count);
        let mut keys = Elements { entries: keys, data, position: 0 };
        let mut values = Elements { entries: values, data, position: keys.end() };
        sink.put(b"{");
        if let Some(key) = keys.next()? {
            put_string(sink, b"\"", key.bytes, b"\": ");
            put_element(sink, values.next()??, depth)?;
        }
        while let Some(key) = keys.next()? {
            put_string(sink, b", \"", key.bytes, b"\": ");
            put_element(sink, values.next()??, depth)?;
        }
        sink.put(b"}");
    } else {
        let mut elements = Elements { entries, data, position: 0 };
        // A value that is neither array nor object is stored as the only element of an array.
        let is_scalar = header & container::SCALAR != 0;
        if !is_scalar {
            sink.put(b"[");
        }
        let mut first = true;
        while let Some(element) = elements.next()? {
            if !first {
                sink.put(b", ");
            }
            first = false;
            put_element(sink, element, depth)?;
        }
        if !is_scalar {
            sink.put(b"]");
        }
    }
    Some(())
}

#[inline]
fn put_element(sink: &mut impl Sink, element: Element<'_>, depth: u32) -> Option<()> {
    match element.kind {
        entry::STRING => put_string(sink, b"\"", element.bytes, b"\""),
        entry::NUMERIC => {
            let mut bytes = [0; CAPACITY];
            let mut text = Text::new(&mut bytes);
            let value = Numeric::read(without_header(element.bytes)?)?;
            if !numeric(&mut text, value) {
                return None;
            }
            sink.put(text.as_bytes());
        }
        entry::FALSE => sink.put(b"false"),
        entry::TRUE => sink.put(b"true"),
        entry::NULL => sink.put(b"null"),
        entry::CONTAINER => put_container(sink, element.bytes, depth)?,
        _ => return None,
    }
    Some(())
}

/// The content of a varlena with a header of four bytes that is neither compressed nor toasted.
#[inline]
fn without_header(varlena: &[u8]) -> Option<&[u8]> {
    let (header, rest) = varlena.split_first_chunk::<4>()?;
    let header = word(header);
    let (tag, length) =
        if cfg!(target_endian = "little") { (header & 3, header >> 2) } else { (header >> 30, header) };
    if tag != 0 {
        return None;
    }
    rest.get(..(length as usize).checked_sub(4)?)
}

/// Whether a byte can't stand in a string as it is.
#[inline]
fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Whether one of eight bytes is special.
#[inline]
fn has_special(bytes: [u8; 8]) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGHEST: u64 = 0x80 * EACH;
    let word = u64::from_ne_bytes(bytes);
    // The highest bit of a byte of `word - limit * EACH` is set where the byte was below the limit, or else had it
    // set before. A borrow only comes from a byte that was below, and then the answer is known.
    let has_below = |word: u64, limit: u64| word.wrapping_sub(limit * EACH) & !word & HIGHEST != 0;
    let has = |byte: u8| has_below(word ^ (u64::from(byte) * EACH), 1);
    has_below(word, 0x20) || has(b'"') || has(b'\\')
}

const CHUNK: usize = 16;

/// Whether one of many bytes is special. Without a branch, for the compiler to take them all at once.
#[inline]
fn has_special_chunk(bytes: &[u8; CHUNK]) -> bool {
    bytes.iter().fold(false, |special, byte| special | is_special(*byte))
}

/// Whether all bytes can stand in a string as they are.
#[inline]
fn is_ordinary(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<CHUNK>();
    if chunks.iter().any(has_special_chunk) {
        return false;
    }
    // What is left together with some of what came before it is a whole one again.
    match (bytes.last_chunk::<CHUNK>(), rest.first_chunk::<8>(), rest.last_chunk::<8>()) {
        (Some(last), ..) => rest.is_empty() || !has_special_chunk(last),
        (None, Some(first), Some(last)) => !has_special(*first) && !has_special(*last),
        _ => !rest.iter().any(|byte| is_special(*byte)),
    }
}

/// A string, with what is before and behind it, quotes included.
#[inline]
fn put_string<const BEFORE: usize, const BEHIND: usize>(
    sink: &mut impl Sink,
    before: &[u8; BEFORE],
    bytes: &[u8],
    behind: &[u8; BEHIND],
) {
    if is_ordinary(bytes) {
        sink.put_between(before, bytes, behind);
    } else {
        sink.put(before);
        put_escaped(sink, bytes);
        sink.put(behind);
    }
}

fn put_escaped(sink: &mut impl Sink, mut bytes: &[u8]) {
    loop {
        let chunks = bytes.as_chunks::<CHUNK>().0.iter().take_while(|chunk| !has_special_chunk(chunk));
        let whole = CHUNK * chunks.count();
        let ordinary = bytes[whole..].iter().take_while(|byte| !is_special(**byte)).count();
        let (before, rest) = bytes.split_at(whole + ordinary);
        sink.put(before);
        let Some((special, rest)) = rest.split_first() else { break };
        put_special(sink, *special);
        bytes = rest;
    }
}

fn put_special(sink: &mut impl Sink, byte: u8) {
    let letter = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0C => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            let mut digits = [0; 2];
            crate::hex(&[byte], &mut digits);
            return sink.put(&[b'\\', b'u', b'0', b'0', digits[0], digits[1]]);
        }
    };
    sink.put(&[b'\\', letter]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Sink for Vec<u8> {
        fn put(&mut self, bytes: &[u8]) {
            self.extend_from_slice(bytes);
        }
    }

    #[derive(Clone, Debug)]
    enum Json {
        Null,
        Bool(bool),
        Digit(u16),
        String(String),
        Array(Vec<Json>),
        Object(Vec<(String, Json)>),
    }

    /// Stores a value as the server does, with every 32nd element's end instead of its length.
    fn store(json: &Json) -> Vec<u8> {
        match json {
            Json::Array(elements) => stored(container::ARRAY, elements.len(), elements.iter()),
            Json::Object(pairs) => {
                let keys: Vec<_> = pairs.iter().map(|(key, _)| Json::String(key.clone())).collect();
                let values = pairs.iter().map(|(_, value)| value);
                stored(container::OBJECT, pairs.len(), keys.iter().chain(values))
            }
            scalar => stored(container::ARRAY | container::SCALAR, 1, core::iter::once(scalar)),
        }
    }

    fn stored<'a>(kind: u32, count: usize, elements: impl Iterator<Item = &'a Json>) -> Vec<u8> {
        let mut entries = Vec::new();
        let mut data: Vec<u8> = Vec::new();
        for (index, element) in elements.enumerate() {
            let start = data.len();
            let aligned = |data: &mut Vec<u8>| data.resize(data.len().next_multiple_of(4), 0);
            let kind = match element {
                Json::Null => entry::NULL,
                Json::Bool(value) => {
                    if *value {
                        entry::TRUE
                    } else {
                        entry::FALSE
                    }
                }
                Json::Digit(digit) => {
                    aligned(&mut data);
                    let header = 8u32 << if cfg!(target_endian = "little") { 2 } else { 0 };
                    data.extend(header.to_ne_bytes());
                    data.extend(0x8000u16.to_ne_bytes());
                    data.extend(digit.to_ne_bytes());
                    entry::NUMERIC
                }
                Json::String(string) => {
                    data.extend(string.as_bytes());
                    entry::STRING
                }
                container => {
                    aligned(&mut data);
                    data.extend(store(container));
                    entry::CONTAINER
                }
            };
            let place = if index % 32 == 0 {
                data.len() as u32 | entry::HAS_END
            } else {
                (data.len() - start) as u32
            };
            entries.push(kind | place);
        }
        let mut bytes = (kind | count as u32).to_ne_bytes().to_vec();
        bytes.extend(entries.iter().flat_map(|entry| entry.to_ne_bytes()));
        bytes.extend(data);
        bytes
    }

    fn text(stored: &[u8]) -> Option<String> {
        let mut text = Vec::new();
        jsonb(&mut text, stored).then(|| String::from_utf8(text).expect("what was UTF-8 still is"))
    }

    /// As the server would write it, put together in another way.
    fn expected(json: &Json) -> String {
        fn string(string: &str) -> String {
            let escaped = string.chars().map(|character| match character {
                '"' => "\\\"".to_owned(),
                '\\' => "\\\\".to_owned(),
                '\u{8}' => "\\b".to_owned(),
                '\u{c}' => "\\f".to_owned(),
                '\n' => "\\n".to_owned(),
                '\r' => "\\r".to_owned(),
                '\t' => "\\t".to_owned(),
                other if (other as u32) < 0x20 => format!("\\u{:04x}", other as u32),
                other => other.to_string(),
            });
            format!("\"{}\"", escaped.collect::<String>())
        }
        match json {
            Json::Null => "null".to_owned(),
            Json::Bool(value) => value.to_string(),
            Json::Digit(digit) => digit.to_string(),
            Json::String(value) => string(value),
            Json::Array(elements) => {
                format!("[{}]", elements.iter().map(expected).collect::<Vec<_>>().join(", "))
            }
            Json::Object(pairs) => {
                let pairs: Vec<_> = pairs
                    .iter()
                    .map(|(key, value)| format!("{}: {}", string(key), expected(value)))
                    .collect();
                format!("{{{}}}", pairs.join(", "))
            }
        }
    }

    fn any_json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::Bool),
            (0u16..10_000).prop_map(Json::Digit),
            any::<String>().prop_map(Json::String),
            "[a-z\"\\\\\u{0}-\u{1f}]{0,40}".prop_map(Json::String),
        ];
        leaf.prop_recursive(6, 200, 70, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..70).prop_map(Json::Array),
                prop::collection::vec((any::<String>(), inner), 0..70).prop_map(Json::Object),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value(json in any_json()) {
            let stored = store(&json);
            let text = text(&stored);
            prop_assert_eq!(&text, &Some(expected(&json)));
            prop_assert!(text.is_none_or(|text| text.len() <= JSONB_GROWTH * stored.len()));
        }

        #[test]
        fn any_bytes(bytes: Vec<u8>) {
            jsonb(&mut Vec::new(), &bytes);
        }

        #[test]
        fn a_damaged_value(json in any_json(), place: prop::sample::Index, byte: u8) {
            let mut stored = store(&json);
            let place = place.index(stored.len());
            stored[place] = byte;
            jsonb(&mut Vec::new(), &stored);
        }
    }

    #[test]
    fn special_bytes_in_any_place() {
        for length in 0..70 {
            let mut bytes = vec![b'a'; length];
            assert!(is_ordinary(&bytes));
            for place in 0..length {
                for byte in 0..=255 {
                    bytes[place] = byte;
                    assert_eq!(is_ordinary(&bytes), !is_special(byte), "{byte} at {place} of {length}");
                }
                // Bytes that only their neighbours could make special.
                bytes[place] = [b' ', b'!', b'#', b'[', b']', 0x80, 0xFF, 0xA2, 0xDC][(place + length) % 9];
                assert!(is_ordinary(&bytes));
            }
        }
    }

    #[test]
    fn depth() {
        let nested = |depth: u32| (0..depth).fold(Json::Null, |inner, _| Json::Array(vec![inner]));
        let deepest = MAXIMUM_DEPTH;
        assert_eq!(text(&store(&nested(deepest))), Some(expected(&nested(deepest))));
        assert_eq!(text(&store(&nested(deepest + 1))), None);
    }

    #[test]
    fn a_number_that_is_too_long() {
        let mut stored = store(&Json::Digit(1));
        let digits = stored.len() - 4;
        // In the long form, with a weight of 100.
        stored.truncate(digits);
        stored.extend([0u16, 100, 1].iter().flat_map(|word| word.to_ne_bytes()));
        let numeric = stored.len() - 8 - 2;
        let header = 10u32 << if cfg!(target_endian = "little") { 2 } else { 0 };
        stored[numeric..numeric + 4].copy_from_slice(&header.to_ne_bytes());
        stored[4..8].copy_from_slice(&(entry::NUMERIC | entry::HAS_END | 10).to_ne_bytes());
        assert_eq!(text(&stored), None);
        stored[digits + 2..digits + 4].copy_from_slice(&1u16.to_ne_bytes());
        assert_eq!(text(&stored).as_deref(), Some("10000"));
    }
}
