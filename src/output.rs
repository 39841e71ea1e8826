//! The way out: messages over the decoding context.
//!
//! The server's own write function frames a message, hands it to the connection and flushes the connection: a
//! `send()` for each row, with a packet and a TLS record each. A walsender's client sees the same frames in the
//! same order if they are gathered in the connection's buffer and flushed together, so that is what happens with
//! everything that more is certain to follow on: only the last message of a transaction or stream block, and
//! every so many bytes or milliseconds one in between, takes the server's own way. That way also is where the
//! server looks after interrupts, replies, keepalives, timeouts and a client that doesn't read.

use pgoutput_protocol::Timestamp;

use crate::error::Error;
use crate::server::connection::{self, Connection};
use crate::server::context::Context;
use crate::server::memory::MAXIMUM_ALLOCATION;
use crate::server::string_info::StringInfoBuffer;

/// Which LSN the frame around a message shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameLsn {
    /// The context's write location.
    WriteLocation,
    /// 0: more messages of the same change follow.
    Zero,
}

/// When a message must have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// At once: nothing may follow for a while.
    AtOnce,
    /// Soon: more messages of the transaction or stream block follow.
    Gathered,
}

/// How long a message may wait for others, in microseconds. What is waited for is rows that are being decoded already, so this is
/// reached only where decoding is slow or where rows that go out are followed by many that don't.
const MAXIMUM_AGE: i64 = 20_000;

/// What a frame takes in the connection's buffer beyond its own length: CopyData's type and length.
const COPY_DATA_HEADER: usize = 5;

/// The output of a decoding session.
#[derive(Debug)]
pub struct Output {
    /// The client's connection, where the session writes to one.
    connection: Option<Connection>,
    /// What has been gathered since the last flush.
    gathered: Option<Gathered>,
    /// Whether the callback at hand has sent a message.
    sent: bool,
}

#[derive(Clone, Copy, Debug)]
struct Gathered {
    bytes: usize,
    /// When the first of them came.
    since: Timestamp,
}

impl Gathered {
    fn is_old(&self, now: Timestamp) -> bool {
        // The clock that is read may be behind the one that `since` is of, but not by so much: a clock that was set back
        // makes it old, too.
        !(-MAXIMUM_AGE..MAXIMUM_AGE).contains(&now.0.wrapping_sub(self.since.0))
    }
}

impl Output {
    /// The output of a session with this context.
    pub fn new(context: &Context<'_>) -> Self {
        Output { connection: Connection::of(context), gathered: None, sent: false }
    }

    /// Sends one message, which `encode` writes.
    ///
    /// If `encode` fails, nothing is sent: the next message begins with an empty buffer.
    pub fn message(
        &mut self,
        context: &mut Context<'_>,
        lsn: FrameLsn,
        delivery: Delivery,
        encode: impl FnOnce(&mut StringInfoBuffer<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.sent = true;
        let last_write = lsn == FrameLsn::WriteLocation;
        let flush_bytes = crate::settings::flush_bytes();
        let connection = match self.connection {
            Some(connection) if delivery == Delivery::Gathered && flush_bytes > 0 => connection,
            _ => {
                context.prepare_write(last_write);
                // SAFETY: the server's buffer is valid between prepare_write and write, and nobody else uses it
                // meanwhile.
                let mut buffer = unsafe { StringInfoBuffer::new(context.out()) };
                encode(&mut buffer)?;
                buffer.terminate();
                self.make_room(buffer.length());
                self.gathered = None;
                context.write(last_write);
                return Ok(());
            }
        };

        connection.begin_frame(context, last_write);
        // SAFETY: as above, and the frame is only handed on below.
        let mut buffer = unsafe { StringInfoBuffer::new(context.out()) };
        encode(&mut buffer)?;
        buffer.terminate();
        let length = buffer.length();
        self.make_room(length);
        // Reading the exact clock for each row would show. The first message that waits has the exact time and the others
        // at least that, so that send times don't go back.
        let (mut gathered, now) = match self.gathered {
            Some(gathered) => (gathered, connection::recently()),
            None => {
                let now = connection::now();
                (Gathered { bytes: 0, since: now }, now)
            }
        };
        gathered.bytes += length;
        if gathered.bytes >= flush_bytes || gathered.is_old(now) {
            self.gathered = None;
            context.adopt_frame();
            context.write(last_write);
        } else {
            connection.put_frame(context, now.max(gathered.since));
            self.gathered = Some(gathered);
        }
        Ok(())
    }

    /// A callback ends. If it had nothing to send, what has been gathered must not wait for one that has.
    pub fn end_callback(&mut self) {
        if core::mem::take(&mut self.sent) {
            return;
        }
        let (Some(gathered), Some(connection)) = (self.gathered, self.connection) else { return };
        let now = connection::recently();
        if gathered.is_old(now) {
            connection.flush_if_writable();
            // What a client that doesn't read leaves no room for is tried again after a while: nothing else might
            // follow that sends it.
            self.gathered = connection.is_send_pending().then_some(Gathered { since: now, ..gathered });
        }
    }

    /// Empties the connection's buffer if a message of that length doesn't fit behind what is in it.
    ///
    /// Only then: this waits for a client that doesn't read without looking after timeouts.
    fn make_room(&self, length: usize) {
        // The connection's buffer is one allocation. A frame is longer than its CopyData header, so that twice their
        // length is more than what they take.
        if let (Some(gathered), Some(connection)) = (self.gathered, self.connection)
            && 2 * gathered.bytes + length + COPY_DATA_HEADER > MAXIMUM_ALLOCATION
        {
            connection.flush();
        }
    }
}
