//! Decodes arbitrary bytes as a stream of messages.
//!
//! The first byte of the input holds the options, then comes one message after the other, each after an Int16
//! length.

#![no_main]

use std::fmt::Write;

use libfuzzer_sys::fuzz_target;
use pgoutput_protocol::frame::{ServerFrame, StandbyStatusUpdate};
use pgoutput_protocol::{Decoder, Message, Options};

fuzz_target!(|input: &[u8]| {
    let Some((options, mut rest)) = input.split_first() else { return };
    let mut decoder =
        Decoder::new(Options { protocol_version: 1 + (options & 3), streaming_parallel: options & 4 != 0 });
    let mut encoded = Vec::new();
    let mut line = String::new();
    while let Some((length, messages)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length)).min(messages.len());
        let (message, messages) = messages.split_at(length);
        rest = messages;
        check_message(&mut decoder, message, &mut encoded, &mut line);
        check_frame(message, &mut encoded);
    }
});

/// What decodes is encoded to the same bytes again and can be printed; an error points into the message and
/// leaves the decoder as it was.
fn check_message(decoder: &mut Decoder, bytes: &[u8], encoded: &mut Vec<u8>, line: &mut String) {
    let in_stream = decoder.in_stream();
    match decoder.decode(bytes) {
        Ok(message) => {
            encoded.clear();
            message.encode(encoded);
            assert_eq!(encoded, bytes);
            line.clear();
            assert!(write!(line, "{message}").is_ok() && !line.contains('\n'));
            let expected = match message {
                Message::StreamStart(_) => true,
                Message::StreamStop(_) => false,
                _ => in_stream,
            };
            assert_eq!(decoder.in_stream(), expected);
        }
        Err(error) => {
            assert!(error.offset <= bytes.len());
            assert_eq!(decoder.in_stream(), in_stream);
            line.clear();
            assert!(write!(line, "{error}").is_ok());
        }
    }
}

fn check_frame(bytes: &[u8], encoded: &mut Vec<u8>) {
    encoded.clear();
    if let Ok(frame) = ServerFrame::decode(bytes) {
        frame.encode(encoded);
        assert_eq!(encoded, bytes);
    } else if let Ok(update) = StandbyStatusUpdate::decode(bytes) {
        update.encode(encoded);
        assert_eq!(encoded, bytes);
    }
}
