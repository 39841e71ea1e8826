//! What START_REPLICATION, or an SQL function, passed to the plugin.
//!
//! The options are those of "Logical Streaming Replication Protocol" in the PostgreSQL manual. What is wrong with
//! them is found in the built-in plugin's order, so that the first complaint is the same.

use core::ffi::CStr;
use std::ffi::CString;

use crate::error::{Error, ProtocolFeature};
use crate::server::context::{Context, PluginOption};
use crate::server::{self, BEHAVIOUR};

/// The lowest protocol version.
const MINIMUM_PROTOCOL_VERSION: u32 = 1;

/// Whether transactions are streamed before they end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streaming {
    /// They aren't.
    #[default]
    Off,
    /// They are.
    On,
    /// They are, and Stream Abort tells an LSN and a time, which lets the subscriber apply them in parallel.
    Parallel,
}

/// Valid options.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `proto_version`.
    pub protocol_version: u32,
    /// `publication_names`, in the client's order.
    pub publication_names: Vec<CString>,
    /// `binary`: values are sent in their types' binary form.
    pub binary: bool,
    /// `messages`: logical messages are sent.
    pub messages: bool,
    /// `streaming`.
    pub streaming: Streaming,
    /// `two_phase`.
    pub two_phase: bool,
    /// `origin 'none'`: changes that came from another origin aren't sent.
    pub only_local_origin: bool,
}

/// The options that have been given so far.
#[derive(Default)]
struct Given {
    protocol_version: bool,
    publication_names: bool,
    binary: bool,
    messages: bool,
    streaming: bool,
    two_phase: bool,
    origin: bool,
}

impl Options {
    /// Reads and checks them, and tells the server what they ask of it.
    ///
    /// `split` splits a list of identifiers by the rules of SQL names.
    pub fn read(
        context: &mut Context<'_>,
        split: impl Fn(&CStr) -> Option<Vec<CString>>,
    ) -> Result<Self, Error> {
        let options = Options::parse(&context.options(), split)?;
        options.check_protocol_version()?;
        if !BEHAVIOUR.checks_required_options && options.publication_names.is_empty() {
            return Err(Error::PublicationNamesMissing);
        }
        options.settle_streaming(context)?;
        options.settle_two_phase(context)?;
        Ok(options)
    }

    fn parse(
        given_options: &[PluginOption<'_>],
        split: impl Fn(&CStr) -> Option<Vec<CString>>,
    ) -> Result<Self, Error> {
        let mut options = Options::default();
        let mut given = Given::default();
        for &(name, value) in given_options {
            match name.to_bytes() {
                b"proto_version" => {
                    let strict = server::has_changes_of_15_20();
                    if strict {
                        required(name, value)?;
                    }
                    once(&mut given.protocol_version)?;
                    options.protocol_version = protocol_version(required(name, value)?, strict)?;
                }
                b"publication_names" => {
                    once(&mut given.publication_names)?;
                    options.publication_names =
                        split(required(name, value)?).ok_or(Error::InvalidPublicationNames)?;
                }
                b"binary" => {
                    once(&mut given.binary)?;
                    options.binary = boolean(name, value)?;
                }
                b"messages" => {
                    once(&mut given.messages)?;
                    options.messages = boolean(name, value)?;
                }
                b"streaming" => {
                    once(&mut given.streaming)?;
                    options.streaming = streaming(name, value)?;
                }
                b"two_phase" => {
                    once(&mut given.two_phase)?;
                    options.two_phase = boolean(name, value)?;
                }
                b"origin" if BEHAVIOUR.origin_option => {
                    once(&mut given.origin)?;
                    options.only_local_origin = only_local_origin(required(name, value)?)?;
                }
                _ => return Err(Error::UnrecognizedOption { option: name.to_owned() }),
            }
        }
        if BEHAVIOUR.checks_required_options {
            if !given.protocol_version {
                return Err(Error::OptionMissing { option: c"proto_version" });
            }
            if !given.publication_names {
                return Err(Error::OptionMissing { option: c"publication_names" });
            }
        }
        Ok(options)
    }

    fn check_protocol_version(&self) -> Result<(), Error> {
        let requested = self.protocol_version;
        let supported = BEHAVIOUR.maximum_protocol_version;
        if requested > supported {
            return Err(Error::ProtocolVersionTooHigh { requested, supported });
        }
        if requested < MINIMUM_PROTOCOL_VERSION {
            return Err(Error::ProtocolVersionTooLow { requested, supported: MINIMUM_PROTOCOL_VERSION });
        }
        Ok(())
    }

    fn require(&self, feature: ProtocolFeature) -> Result<(), Error> {
        if self.protocol_version < feature.protocol_version() {
            return Err(Error::ProtocolVersionLacks { feature, requested: self.protocol_version });
        }
        Ok(())
    }

    /// A stream needs the client, the protocol and the server to have it; without the client's wish the server
    /// must not begin one.
    fn settle_streaming(&self, context: &mut Context<'_>) -> Result<(), Error> {
        let feature = match self.streaming {
            Streaming::Off => {
                context.set_streaming(false);
                return Ok(());
            }
            Streaming::On => ProtocolFeature::Streaming,
            Streaming::Parallel => ProtocolFeature::ParallelStreaming,
        };
        self.require(feature)?;
        if !context.streaming() {
            return Err(Error::NotSupported { feature });
        }
        Ok(())
    }

    /// Unlike streaming, two-phase decoding stays on when the client doesn't ask for it: a slot that has it once
    /// has it for good, and the server looks at both.
    fn settle_two_phase(&self, context: &mut Context<'_>) -> Result<(), Error> {
        if self.two_phase {
            self.require(ProtocolFeature::TwoPhase)?;
            if !context.two_phase() {
                return Err(Error::NotSupported { feature: ProtocolFeature::TwoPhase });
            }
        }
        context.set_two_phase_option_given(self.two_phase);
        Ok(())
    }
}

fn once(given: &mut bool) -> Result<(), Error> {
    if core::mem::replace(given, true) { Err(Error::RedundantOption) } else { Ok(()) }
}

/// The built-in plugin follows a null pointer where `proto_version` or `publication_names` have no value.
fn required<'a>(option: &CStr, value: Option<&'a CStr>) -> Result<&'a CStr, Error> {
    value.ok_or_else(|| Error::ParameterRequired { option: option.to_owned() })
}

/// An option without a value is true. Nothing but these four words is a boolean here.
fn parse_boolean(value: Option<&CStr>) -> Option<bool> {
    let Some(value) = value else { return Some(true) };
    let is = |word: &[u8]| value.to_bytes().eq_ignore_ascii_case(word);
    if is(b"true") || is(b"on") {
        Some(true)
    } else if is(b"false") || is(b"off") {
        Some(false)
    } else {
        None
    }
}

fn boolean(option: &CStr, value: Option<&CStr>) -> Result<bool, Error> {
    parse_boolean(value).ok_or_else(|| Error::NotBoolean { option: option.to_owned() })
}

fn streaming(option: &CStr, value: Option<&CStr>) -> Result<Streaming, Error> {
    if !BEHAVIOUR.parallel_streaming {
        return Ok(if boolean(option, value)? { Streaming::On } else { Streaming::Off });
    }
    match parse_boolean(value) {
        Some(true) => Ok(Streaming::On),
        Some(false) => Ok(Streaming::Off),
        None if value.is_some_and(|value| value.to_bytes().eq_ignore_ascii_case(b"parallel")) => {
            Ok(Streaming::Parallel)
        }
        None => Err(Error::NotStreamingMode { option: option.to_owned() }),
    }
}

fn only_local_origin(value: &CStr) -> Result<bool, Error> {
    if value.to_bytes().eq_ignore_ascii_case(b"none") {
        Ok(true)
    } else if value.to_bytes().eq_ignore_ascii_case(b"any") {
        Ok(false)
    } else {
        Err(Error::UnrecognizedOrigin { given: value.to_owned() })
    }
}

/// Reads a protocol version as C's `strtoul` with base 10 does, which the built-in plugin uses: white space and a
/// sign in front are fine, a minus wraps around, and an empty text is 0 unless `strict`.
fn protocol_version(given: &CStr, strict: bool) -> Result<u32, Error> {
    let text = given.to_bytes();
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let trimmed = &text[text.iter().take_while(|byte| is_space(byte)).count()..];
    let (negative, digits) = match trimmed {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, trimmed),
    };
    if text.is_empty() && !strict {
        return Ok(0);
    }
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Error::InvalidProtocolVersion);
    }
    let mut number: u64 = 0;
    for digit in digits {
        number = number
            .checked_mul(10)
            .and_then(|number| number.checked_add(u64::from(digit - b'0')))
            .ok_or(Error::InvalidProtocolVersion)?;
    }
    if negative {
        number = number.wrapping_neg();
    }
    u32::try_from(number).map_err(|_| Error::ProtocolVersionOutOfRange { given: given.to_owned() })
}
