//! Bytes that no server would send: the decoder neither panics nor takes more memory than they justify.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{Source, can_come, encode};
use pgoutput_protocol::frame::{ServerFrame, StandbyStatusUpdate};
use pgoutput_protocol::{DecodeError, Decoder, Message, MessageType, Options, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// The system's allocator, which counts what a thread asks of it.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all is left to the system's allocator. The counter neither allocates nor has a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + layout.size());
        // SAFETY: the caller's promise is the one that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + size);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What the documentation of [`Decoder`] promises.
const ALLOCATED_PER_BYTE: usize = 24;

/// Decodes and checks what is true of all bytes.
fn decode<'a>(decoder: &mut Decoder, bytes: &'a [u8]) -> Result<Message<'a>, DecodeError> {
    let in_stream = decoder.in_stream();
    let before = ALLOCATED.get();
    let decoded = decoder.decode(bytes);
    let allocated = ALLOCATED.get() - before;
    assert!(allocated <= ALLOCATED_PER_BYTE * bytes.len(), "{allocated} bytes for {}", bytes.len());
    match &decoded {
        Ok(message) => {
            assert_eq!(encode(message), bytes);
            for line in [message.to_string(), format!("{message:#}")] {
                assert!(line.starts_with(message.message_type().name()));
                assert!(!line.contains(char::is_control), "{line:?}");
            }
        }
        Err(error) => {
            assert_eq!(decoder.in_stream(), in_stream);
            assert!(error.offset <= bytes.len());
        }
    }
    decoded
}

/// A decoder at its start, or after Stream Start.
fn decoder(protocol_version: u8, streaming_parallel: bool, in_stream: bool) -> Decoder {
    let mut decoder = Decoder::new(Options { protocol_version, streaming_parallel });
    if in_stream {
        assert_eq!(protocol_version >= 2, decoder.decode(b"S\0\0\0\x01\x01").is_ok());
    }
    decoder
}

proptest! {
    /// Any bytes, with any type of message in front.
    #[test]
    fn arbitrary_bytes(
        bytes in vec(any::<u8>(), 0..600),
        protocol_version: u8,
        streaming_parallel: bool,
        in_stream: bool,
    ) {
        let mut fresh = decoder(protocol_version, streaming_parallel, in_stream);
        let _ = decode(&mut fresh, &bytes);
        for message_type in MessageType::ALL {
            let message = [&[message_type.byte()], bytes.as_slice()].concat();
            let _ = decode(&mut fresh.clone(), &message);
        }
    }

    /// Any bytes as frames.
    #[test]
    fn arbitrary_frames(bytes in vec(any::<u8>(), 0..60), length in 0..60usize) {
        for frame_type in [b'w', b'k', b'r'] {
            let mut frame = [&[frame_type], bytes.as_slice()].concat();
            frame.truncate(length);
            let mut encoded = Vec::new();
            if let Ok(decoded) = ServerFrame::decode(&frame) {
                decoded.encode(&mut encoded);
                prop_assert_eq!(&encoded, &frame);
            } else if let Ok(decoded) = StandbyStatusUpdate::decode(&frame) {
                decoded.encode(&mut encoded);
                prop_assert_eq!(&encoded, &frame);
            }
        }
    }

    /// A message that is cut short anywhere is an error of that message, and so is one that goes on.
    #[test]
    fn cut_and_prolonged(bytes in vec(any::<u8>(), 0..400), in_stream: bool, parallel: bool, more: u8) {
        for message_type in MessageType::ALL.into_iter().filter(|message| can_come(*message, 4, in_stream)) {
            let mut message = encode(&Source::new(&bytes).message(message_type, in_stream, parallel));
            let fresh = decoder(4, parallel, in_stream);
            for length in 1..message.len() {
                let error = decode(&mut fresh.clone(), &message[..length]).expect_err("a part of a message");
                prop_assert_eq!(error.message, message_type.name());
            }
            message.push(more);
            let error = decode(&mut fresh.clone(), &message).expect_err("more than a message");
            prop_assert_eq!((error.field, error.offset), ("end", message.len() - 1));
        }
    }

    /// Messages with a few bytes changed, also in their counts and lengths.
    #[test]
    fn mutated(
        bytes in vec(any::<u8>(), 0..400),
        changes in vec((any::<Index>(), any::<u8>()), 1..4),
        in_stream: bool,
        parallel: bool,
    ) {
        for message_type in MessageType::ALL.into_iter().filter(|message| can_come(*message, 4, in_stream)) {
            let mut message = encode(&Source::new(&bytes).message(message_type, in_stream, parallel));
            for (index, byte) in &changes {
                let at = index.index(message.len());
                message[at] = *byte;
            }
            let _ = decode(&mut decoder(4, parallel, in_stream), &message);
        }
    }
}

/// Counts far beyond the message, where a decoder that believes them would take the most.
#[test]
fn great_counts() {
    for bytes in [
        b"R\0\0\x40\0public\0t\0d\xFF\xFF\0".as_slice(),
        b"I\0\0\x40\0N\xFF\xFFn",
        b"I\0\0\x40\0N\0\x01t\x7F\xFF\xFF\xFF",
        b"T\xFF\xFF\xFF\xFF\0\0\0\x40\0",
        b"T\x7F\xFF\xFF\xFF\0\0\0\x40\0",
        b"M\0\0\0\0\0\0\0\0\0prefix\0\xFF\xFF\xFF\xFF",
    ] {
        assert!(decode(&mut decoder(1, false, false), bytes).is_err());
        let before = ALLOCATED.get();
        assert!(decoder(1, false, false).decode(bytes).is_err());
        // Room for the one value that can be there.
        assert!(ALLOCATED.get() - before <= size_of::<Value<'_>>());
    }
}

/// The costliest message there is reaches what is promised, so that the promise is not idle.
#[test]
fn nulls_cost_the_most() {
    let mut message = b"I\0\0\x40\0N\xFF\xFF".to_vec();
    message.resize(message.len() + 0xFFFF, b'n');
    let before = ALLOCATED.get();
    assert!(decoder(1, false, false).decode(&message).is_ok());
    assert_eq!(ALLOCATED.get() - before, ALLOCATED_PER_BYTE * 0xFFFF);
}
