//! The way out: messages over the decoding context.

use crate::error::Error;
use crate::server::context::Context;
use crate::server::string_info::StringInfoBuffer;

/// Which LSN the frame around a message shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameLsn {
    /// The context's write location.
    WriteLocation,
    /// 0: more messages of the same change follow.
    Zero,
}

/// Sends one message, which `encode` writes.
///
/// If `encode` fails, nothing is sent: the next message begins with an empty buffer.
pub fn message(
    context: &mut Context<'_>,
    lsn: FrameLsn,
    encode: impl FnOnce(&mut StringInfoBuffer<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let last_write = lsn == FrameLsn::WriteLocation;
    context.prepare_write(last_write);
    // SAFETY: the server's buffer is valid between prepare_write and write, and nobody else uses it meanwhile.
    let mut buffer = unsafe { StringInfoBuffer::new(context.out()) };
    encode(&mut buffer)?;
    buffer.terminate();
    context.write(last_write);
    Ok(())
}
