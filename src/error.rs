//! What can go wrong in the plugin itself.
//!
//! An error travels as a value up to the callback's boundary and is raised there as the server's ERROR. SQLSTATEs
//! and texts are those of the built-in plugin of the same version. (What goes wrong inside the server's own
//! functions is the server's ERROR from the start.)

use core::ffi::CStr;
use std::ffi::CString;

use pgrx::pg_sys::errcodes::PgSqlErrorCode as SqlState;

use crate::server::report::Argument::{Integer, Text, Unsigned};
use crate::server::report::{Argument, Format, Report};

/// An error of the plugin.
#[derive(Debug)]
pub enum Error {
    /// An option was given twice.
    RedundantOption,
    /// An option that needs a value has none.
    ParameterRequired {
        /// The option.
        option: CString,
    },
    /// An option isn't a boolean.
    NotBoolean {
        /// The option.
        option: CString,
    },
    /// `streaming` is neither a boolean nor `parallel`.
    NotStreamingMode {
        /// The option.
        option: CString,
    },
    /// `proto_version` isn't a number.
    InvalidProtocolVersion,
    /// `proto_version` is a number that doesn't fit.
    ProtocolVersionOutOfRange {
        /// What was given.
        given: CString,
    },
    /// `publication_names` isn't a list of identifiers.
    InvalidPublicationNames,
    /// `origin` is neither `any` nor `none`.
    UnrecognizedOrigin {
        /// What was given.
        given: CString,
    },
    /// There is no such option.
    UnrecognizedOption {
        /// Its name.
        option: CString,
    },
    /// A required option is missing.
    OptionMissing {
        /// Its name.
        option: &'static CStr,
    },
    /// On servers that look for it late: no publication was named.
    PublicationNamesMissing,
    /// The client's protocol version is too high.
    ProtocolVersionTooHigh {
        /// What the client asked for, printed as a signed number.
        requested: u32,
        /// The highest that the server has.
        supported: u32,
    },
    /// The client's protocol version is too low.
    ProtocolVersionTooLow {
        /// What the client asked for, printed as a signed number.
        requested: u32,
        /// The lowest that the server has.
        supported: u32,
    },
    /// A feature needs a higher protocol version than the client asked for.
    ProtocolVersionLacks {
        /// The feature.
        feature: ProtocolFeature,
        /// What the client asked for, printed as a signed number.
        requested: u32,
    },
    /// A feature was asked for that the server has turned off.
    NotSupported {
        /// The feature.
        feature: ProtocolFeature,
    },
    /// Publications disagree on a relation's column list.
    DifferentColumnLists {
        /// The relation's schema.
        namespace: CString,
        /// Its name.
        relation: CString,
    },
    /// Publications disagree on a relation's generated columns.
    DifferentGeneratedColumns {
        /// The relation's schema.
        namespace: CString,
        /// Its name.
        relation: CString,
    },
    /// A catalog has lost a row that another refers to.
    CacheLookupFailed {
        /// What was looked up.
        what: CatalogObject,
        /// Its oid.
        oid: u32,
    },
}

/// Features that need a protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolFeature {
    /// `streaming`.
    Streaming,
    /// `streaming 'parallel'`.
    ParallelStreaming,
    /// `two_phase`.
    TwoPhase,
}

impl ProtocolFeature {
    /// The lowest protocol version that has it.
    pub fn protocol_version(self) -> u32 {
        match self {
            ProtocolFeature::Streaming => 2,
            ProtocolFeature::TwoPhase => 3,
            ProtocolFeature::ParallelStreaming => 4,
        }
    }
}

/// What a failed catalog look-up was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogObject {
    /// pg_type.
    Type,
    /// pg_namespace.
    Namespace,
    /// pg_class.
    Relation,
}

impl Error {
    /// Raises it.
    pub fn raise(&self) -> ! {
        match self {
            Error::RedundantOption => {
                raise(SqlState::ERRCODE_SYNTAX_ERROR, c"conflicting or redundant options", &[])
            }
            Error::ParameterRequired { option } => {
                raise(SqlState::ERRCODE_SYNTAX_ERROR, c"%s requires a parameter", &[Text(option)])
            }
            Error::NotBoolean { option } => {
                raise(SqlState::ERRCODE_SYNTAX_ERROR, c"%s requires a Boolean value", &[Text(option)])
            }
            Error::NotStreamingMode { option } => raise(
                SqlState::ERRCODE_SYNTAX_ERROR,
                c"%s requires a Boolean value or \"parallel\"",
                &[Text(option)],
            ),
            Error::InvalidProtocolVersion => {
                raise(SqlState::ERRCODE_INVALID_PARAMETER_VALUE, c"invalid proto_version", &[])
            }
            Error::ProtocolVersionOutOfRange { given } => raise(
                SqlState::ERRCODE_INVALID_PARAMETER_VALUE,
                c"proto_version \"%s\" out of range",
                &[Text(given)],
            ),
            Error::InvalidPublicationNames => {
                raise(SqlState::ERRCODE_INVALID_NAME, c"invalid publication_names syntax", &[])
            }
            Error::UnrecognizedOrigin { given } => raise(
                SqlState::ERRCODE_INVALID_PARAMETER_VALUE,
                c"unrecognized origin value: \"%s\"",
                &[Text(given)],
            ),
            Error::UnrecognizedOption { option } => raise(
                SqlState::ERRCODE_INTERNAL_ERROR,
                c"unrecognized pgoutput option: %s",
                &[Text(option)],
            ),
            Error::OptionMissing { option } => raise(
                SqlState::ERRCODE_INVALID_PARAMETER_VALUE,
                c"option \"%s\" missing",
                &[Text(option)],
            ),
            Error::PublicationNamesMissing => raise(
                SqlState::ERRCODE_INVALID_PARAMETER_VALUE,
                c"publication_names parameter missing",
                &[],
            ),
            Error::ProtocolVersionTooHigh { requested, supported } => raise(
                SqlState::ERRCODE_FEATURE_NOT_SUPPORTED,
                crate::server::PROTOCOL_VERSION_TOO_HIGH,
                &[Integer(*requested as i32), Integer(*supported as i32)],
            ),
            Error::ProtocolVersionTooLow { requested, supported } => raise(
                SqlState::ERRCODE_FEATURE_NOT_SUPPORTED,
                crate::server::PROTOCOL_VERSION_TOO_LOW,
                &[Integer(*requested as i32), Integer(*supported as i32)],
            ),
            Error::ProtocolVersionLacks { feature, requested } => raise(
                SqlState::ERRCODE_INVALID_PARAMETER_VALUE,
                match feature {
                    ProtocolFeature::Streaming => {
                        c"requested proto_version=%d does not support streaming, need %d or higher"
                    }
                    ProtocolFeature::ParallelStreaming => {
                        c"requested proto_version=%d does not support parallel streaming, need %d or higher"
                    }
                    ProtocolFeature::TwoPhase => {
                        c"requested proto_version=%d does not support two-phase commit, need %d or higher"
                    }
                },
                &[Integer(*requested as i32), Integer(feature.protocol_version() as i32)],
            ),
            Error::NotSupported { feature } => raise(
                SqlState::ERRCODE_INVALID_PARAMETER_VALUE,
                match feature {
                    ProtocolFeature::Streaming | ProtocolFeature::ParallelStreaming => {
                        c"streaming requested, but not supported by output plugin"
                    }
                    ProtocolFeature::TwoPhase => {
                        c"two-phase commit requested, but not supported by output plugin"
                    }
                },
                &[],
            ),
            Error::DifferentColumnLists { namespace, relation } => raise(
                SqlState::ERRCODE_FEATURE_NOT_SUPPORTED,
                c"cannot use different column lists for table \"%s.%s\" in different publications",
                &[Text(namespace), Text(relation)],
            ),
            Error::DifferentGeneratedColumns { namespace, relation } => raise(
                SqlState::ERRCODE_FEATURE_NOT_SUPPORTED,
                c"cannot use different values of publish_generated_columns for table \"%s.%s\" in different publications",
                &[Text(namespace), Text(relation)],
            ),
            Error::CacheLookupFailed { what, oid } => raise(
                SqlState::ERRCODE_INTERNAL_ERROR,
                match what {
                    CatalogObject::Type => c"cache lookup failed for type %u",
                    CatalogObject::Namespace => c"cache lookup failed for namespace %u",
                    CatalogObject::Relation => c"could not open relation with OID %u",
                },
                &[Unsigned(*oid)],
            ),
        }
    }
}

fn raise(sqlstate: SqlState, format: &'static CStr, arguments: &[Argument<'_>]) -> ! {
    Report { sqlstate, message: Format { format, arguments }, detail: None, hint: None }.error()
}
