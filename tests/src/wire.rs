//! A connection that shows what the server sends, byte for byte: frames of a replication stream, errors with all
//! their fields, notices in their place.
//!
//! `postgres` hides all of that and doesn't speak the replication protocol. This client does no more than the
//! tests need: clusters here trust every local user.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use pgoutput_protocol::Lsn;
use pgoutput_protocol::frame::{ServerFrame, StandbyStatusUpdate};
use postgres_protocol::message::{backend, frontend};

use crate::options::Options;
use crate::{TIMEOUT, postgres_now, quote};

/// How much is read at once.
const READ_SIZE: usize = 256 * 1024;

/// What a session is started with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// For SQL in a database.
    pub fn sql(database: &str) -> Self {
        Parameters::default().with("database", database)
    }

    /// For a walsender that decodes a database.
    pub fn replication(database: &str) -> Self {
        Parameters::sql(database).with("replication", "database")
    }

    /// Adds a setting, such as `client_encoding` or `DateStyle`.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds settings.
    pub fn with_all(self, settings: &[(String, String)]) -> Self {
        settings.iter().fold(self, |parameters, (name, value)| parameters.with(name, value))
    }
}

/// An ErrorResponse or a NoticeResponse.
///
/// What doesn't belong to the user's view of it isn't kept: file, line and routine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// `ERROR`, `FATAL`, `WARNING`…
    pub severity: String,
    /// SQLSTATE.
    pub code: String,
    /// The primary message.
    pub message: String,
    /// DETAIL, or nothing.
    pub detail: String,
    /// HINT, or nothing.
    pub hint: String,
    /// CONTEXT, or nothing.
    pub context: String,
    /// Any other field that says what it is about: schema, table, column, data type, constraint, position.
    pub about: String,
}

impl Response {
    fn parse(mut body: &[u8]) -> io::Result<Response> {
        let mut response = Response::default();
        while let [field, rest @ ..] = body {
            if *field == 0 {
                return Ok(response);
            }
            let end =
                rest.iter().position(|byte| *byte == 0).ok_or_else(|| invalid("a field without an end"))?;
            let value = String::from_utf8_lossy(&rest[..end]).into_owned();
            body = &rest[end + 1..];
            match field {
                // The severity as it is without translation.
                b'V' => response.severity = value,
                b'C' => response.code = value,
                b'M' => response.message = value,
                b'D' => response.detail = value,
                b'H' => response.hint = value,
                b'W' => response.context = value,
                b's' | b't' | b'c' | b'd' | b'n' | b'P' | b'p' | b'q' => {
                    response.about += &format!("{}={value} ", char::from(*field));
                }
                _ => {}
            }
        }
        Err(invalid("fields without an end"))
    }
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.severity, self.code, self.message)?;
        for (name, value) in [
            ("DETAIL", &self.detail),
            ("HINT", &self.hint),
            ("CONTEXT", &self.context),
            ("ABOUT", &self.about),
        ] {
            if !value.is_empty() {
                write!(f, "\n{name}: {value}")?;
            }
        }
        Ok(())
    }
}

/// Why something failed.
#[derive(Debug)]
pub enum Error {
    /// The server said so.
    Server(Box<Response>),
    /// The connection is broken, or the server sends what this client doesn't understand.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Server(response) => response.fmt(f),
            Error::Io(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
            {
                f.write_str("the server is silent")
            }
            Error::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the server sent {what}"))
}

/// A row of a simple query, as text in the session's encoding.
pub type Row = Vec<Option<Vec<u8>>>;

/// What comes in a replication stream.
#[derive(Debug)]
pub enum Event<'a> {
    /// A CopyData message.
    Frame(ServerFrame<'a>),
    /// A NoticeResponse between them.
    Notice(Response),
    /// The server has ended the stream and the connection takes commands again.
    End,
}

/// What a connection can run over.
pub trait Transport: Read + Write + Send {
    /// Sets how long it may be silent before a read or a write fails.
    ///
    /// # Errors
    ///
    /// When it is broken.
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;
}

impl Transport for UnixStream {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)?;
        self.set_write_timeout(timeout)
    }
}

impl Transport for TcpStream {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)?;
        self.set_write_timeout(timeout)
    }
}

/// A connection to a server.
pub struct Connection {
    stream: Box<dyn Transport>,
    buffer: Vec<u8>,
    /// The part of `buffer` that was received and not yet given to the caller.
    unread: Range<usize>,
    /// Notices outside replication streams, until [`Connection::take_notices`].
    notices: VecDeque<Response>,
    backend_pid: u32,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection to backend {}", self.backend_pid)
    }
}

impl Connection {
    /// Connects through a socket in the file system.
    ///
    /// # Errors
    ///
    /// When the server can't be reached or refuses.
    pub fn unix(path: &Path, user: &str, parameters: &Parameters) -> Result<Self, Error> {
        Self::over(Box::new(UnixStream::connect(path)?), user, parameters)
    }

    /// Connects over TCP.
    ///
    /// # Errors
    ///
    /// When the server can't be reached or refuses.
    pub fn tcp(address: impl ToSocketAddrs, user: &str, parameters: &Parameters) -> Result<Self, Error> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Self::over(Box::new(stream), user, parameters)
    }

    /// Starts a session over something that is connected already.
    ///
    /// # Errors
    ///
    /// When the server refuses.
    pub fn over(stream: Box<dyn Transport>, user: &str, parameters: &Parameters) -> Result<Self, Error> {
        stream.set_timeout(Some(TIMEOUT))?;
        let mut connection = Connection {
            stream,
            buffer: vec![0; READ_SIZE],
            unread: 0..0,
            notices: VecDeque::new(),
            backend_pid: 0,
        };
        let mut message = BytesMut::new();
        let parameters = parameters.0.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        frontend::startup_message([("user", user)].into_iter().chain(parameters), &mut message)?;
        connection.send(&message)?;
        loop {
            let (tag, mut body) = connection.message()?;
            match tag {
                backend::AUTHENTICATION_TAG => {
                    if body.try_get_i32().ok() != Some(0) {
                        return Err(invalid("a demand for a password; clusters of the tests trust").into());
                    }
                }
                backend::BACKEND_KEY_DATA_TAG => {
                    connection.backend_pid =
                        body.try_get_u32().map_err(|_| invalid("a short BackendKeyData"))?;
                }
                backend::READY_FOR_QUERY_TAG => return Ok(connection),
                backend::ERROR_RESPONSE_TAG => return Err(Error::Server(Box::new(Response::parse(body)?))),
                _ => {}
            }
        }
    }

    /// The process at the other end.
    pub fn backend_pid(&self) -> u32 {
        self.backend_pid
    }

    /// The notices that came with simple queries.
    pub fn take_notices(&mut self) -> Vec<Response> {
        self.notices.drain(..).collect()
    }

    /// Runs a command of SQL or of the replication protocol. Returns the rows of the last statement.
    ///
    /// # Errors
    ///
    /// When the server says so; the connection can be used on.
    pub fn query(&mut self, command: &str) -> Result<Vec<Row>, Error> {
        self.query_with_data(command, &[])
    }

    /// The same for a COPY … FROM STDIN, which gets its data.
    ///
    /// # Errors
    ///
    /// As [`Connection::query`].
    pub fn query_with_data(&mut self, command: &str, data: &[u8]) -> Result<Vec<Row>, Error> {
        let mut message = BytesMut::new();
        frontend::query(command, &mut message)?;
        self.send(&message)?;
        let mut rows = Vec::new();
        let mut error = None;
        loop {
            let (tag, body) = self.message()?;
            match tag {
                backend::ROW_DESCRIPTION_TAG => rows.clear(),
                backend::DATA_ROW_TAG => {
                    rows.push(parse_row(body).ok_or_else(|| invalid("a broken DataRow"))?)
                }
                backend::NOTICE_RESPONSE_TAG => {
                    let notice = Response::parse(body)?;
                    self.notices.push_back(notice);
                }
                backend::ERROR_RESPONSE_TAG => {
                    let response = Response::parse(body)?;
                    if response.severity != "ERROR" {
                        return Err(Error::Server(Box::new(response)));
                    }
                    error = Some(response);
                }
                backend::COPY_IN_RESPONSE_TAG => {
                    let mut message = BytesMut::new();
                    frontend::CopyData::new(data)?.write(&mut message);
                    frontend::copy_done(&mut message);
                    self.send(&message)?;
                }
                backend::READY_FOR_QUERY_TAG => {
                    return error.map_or(Ok(rows), |error| Err(Error::Server(Box::new(error))));
                }
                _ => {}
            }
        }
    }

    /// Starts a replication stream; [`Connection::event`] gives what comes.
    ///
    /// # Errors
    ///
    /// When the server refuses; the connection can be used on.
    pub fn start_replication(&mut self, slot: &str, from: Lsn, options: &Options) -> Result<(), Error> {
        let command = format!(
            "START_REPLICATION SLOT {} LOGICAL {from}{}",
            quote::identifier(slot),
            options.replication()
        );
        let mut message = BytesMut::new();
        frontend::query(&command, &mut message)?;
        self.send(&message)?;
        let mut error = None;
        loop {
            let (tag, body) = self.message()?;
            match tag {
                COPY_BOTH_RESPONSE_TAG => return Ok(()),
                backend::NOTICE_RESPONSE_TAG => {
                    let notice = Response::parse(body)?;
                    self.notices.push_back(notice);
                }
                backend::ERROR_RESPONSE_TAG => {
                    let response = Response::parse(body)?;
                    if response.severity != "ERROR" {
                        return Err(Error::Server(Box::new(response)));
                    }
                    error = Some(response);
                }
                backend::READY_FOR_QUERY_TAG => {
                    let error = error.ok_or_else(|| invalid("no stream"))?;
                    return Err(Error::Server(Box::new(error)));
                }
                _ => {}
            }
        }
    }

    /// The next event of the replication stream.
    ///
    /// # Errors
    ///
    /// When the server raises an error, which ends the stream: unless it is fatal the connection takes commands again.
    pub fn event(&mut self) -> Result<Event<'_>, Error> {
        loop {
            self.fill()?;
            match self.unread().first() {
                Some(
                    &(backend::COPY_DATA_TAG | backend::NOTICE_RESPONSE_TAG | backend::READY_FOR_QUERY_TAG),
                ) => break,
                Some(&backend::ERROR_RESPONSE_TAG) => {
                    let response = Response::parse(self.take_message().1)?;
                    if response.severity == "ERROR" {
                        while self.message()?.0 != backend::READY_FOR_QUERY_TAG {}
                    }
                    return Err(Error::Server(Box::new(response)));
                }
                _ => {
                    self.take_message();
                }
            }
        }
        match self.take_message() {
            (backend::COPY_DATA_TAG, body) => {
                let frame = ServerFrame::decode(body).map_err(|error| invalid(&error.to_string()))?;
                Ok(Event::Frame(frame))
            }
            (backend::NOTICE_RESPONSE_TAG, body) => Ok(Event::Notice(Response::parse(body)?)),
            _ => Ok(Event::End),
        }
    }

    /// Tells the server how far the client is. With `lsn` 0, it learns nothing and the slot stays where it is.
    ///
    /// # Errors
    ///
    /// When the connection is broken.
    pub fn status_update(&mut self, lsn: Lsn, reply_requested: bool) -> Result<(), Error> {
        let mut update = Vec::new();
        let send_time = postgres_now();
        StandbyStatusUpdate { written: lsn, flushed: lsn, applied: lsn, send_time, reply_requested }
            .encode(&mut update);
        let mut message = BytesMut::new();
        frontend::CopyData::new(update.as_slice())?.write(&mut message);
        self.send(&message)
    }

    /// Asks the server to end the stream, which it does in its own time: [`Event::End`] comes after what it still sends.
    ///
    /// # Errors
    ///
    /// When the connection is broken.
    pub fn end_replication(&mut self) -> Result<(), Error> {
        let mut message = BytesMut::new();
        frontend::copy_done(&mut message);
        self.send(&message)
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        self.stream.write_all(message)?;
        Ok(self.stream.flush()?)
    }

    /// The next message, whatever it is.
    fn message(&mut self) -> Result<(u8, &[u8]), Error> {
        self.fill()?;
        Ok(self.take_message())
    }

    fn unread(&self) -> &[u8] {
        &self.buffer[self.unread.clone()]
    }

    /// Reads until `unread` begins with a whole message.
    fn fill(&mut self) -> Result<(), Error> {
        loop {
            let wanted = match backend::Header::parse(self.unread())? {
                Some(header) => 1 + usize::try_from(header.len()).unwrap_or(0),
                None => READ_SIZE / 2,
            };
            if self.unread.len() >= wanted {
                return Ok(());
            }
            if self.buffer.len() - self.unread.start < wanted {
                self.buffer.copy_within(self.unread.clone(), 0);
                self.unread = 0..self.unread.len();
                if self.buffer.len() < wanted {
                    self.buffer.resize(wanted, 0);
                }
            }
            match self.stream.read(&mut self.buffer[self.unread.end..])? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                read => self.unread.end += read,
            }
        }
    }

    /// Takes the message that `unread` begins with, whole, out of it.
    fn take_message(&mut self) -> (u8, &[u8]) {
        let start = self.unread.start;
        let length = u32::from_be_bytes([1, 2, 3, 4].map(|at| self.buffer[start + at])) as usize;
        self.unread.start += 1 + length;
        (self.buffer[start], &self.buffer[start + 5..=start + length])
    }
}

const COPY_BOTH_RESPONSE_TAG: u8 = b'W';

fn parse_row(mut body: &[u8]) -> Option<Row> {
    let columns = body.try_get_u16().ok()?;
    (0..columns)
        .map(|_| match usize::try_from(body.try_get_i32().ok()?) {
            Err(_) => Some(None),
            Ok(length) => {
                let (value, rest) = body.split_at_checked(length)?;
                body = rest;
                Some(Some(value.to_vec()))
            }
        })
        .collect()
}
