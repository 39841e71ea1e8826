//! Conversion of text to the client's encoding.

use core::ffi::CStr;

use pgrx::pg_sys;

/// Whether text must go through the server's conversion to reach the client.
///
/// The client's encoding is a setting, which a reload of the configuration can change: ask anew in every
/// callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientEncoding {
    converts: bool,
}

impl ClientEncoding {
    /// As it is now.
    pub fn current() -> Self {
        unsafe extern "C-unwind" {
            // Both return a variable and can't raise an ERROR: no need for pgrx's guard, and they are called in
            // every callback.
            fn pg_get_client_encoding() -> core::ffi::c_int;
            fn GetDatabaseEncoding() -> core::ffi::c_int;
        }
        // SAFETY: see above.
        let (client, database) = unsafe { (pg_get_client_encoding(), GetDatabaseEncoding()) };
        // The server's own rule for when it passes text through unseen.
        let converts = client != database && client != pg_sys::pg_enc::PG_SQL_ASCII as core::ffi::c_int;
        ClientEncoding { converts }
    }

    /// Whether it is another than the text's.
    pub fn converts(self) -> bool {
        self.converts
    }

    /// The text in the client's encoding. An ERROR of the server, 22021 or 22P05, if it can't be converted.
    ///
    /// What is converted lives in the current memory context: use it before the callback ends.
    pub fn convert(self, text: &CStr) -> &[u8] {
        if !self.converts {
            return text.to_bytes();
        }
        let length = text.count_bytes();
        // SAFETY: the length is that of the string; the result is the string itself or NUL-terminated memory of
        // the current context.
        unsafe {
            let converted = pg_sys::pg_server_to_client(text.as_ptr(), length as core::ffi::c_int);
            if core::ptr::eq(converted, text.as_ptr()) {
                return text.to_bytes();
            }
            CStr::from_ptr(converted).to_bytes()
        }
    }
}
