//! The client, which does as little as a client can, and the measuring of its walsender.

use std::fs;
use std::hash::Hasher;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, chown};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::BytesMut;
use pgoutput_protocol::Lsn;
use pgoutput_protocol::frame::{PAYLOAD_OFFSET, ServerFrame};
use pgoutput_tests::cluster::USER;
use pgoutput_tests::server::server_user;
use pgoutput_tests::wire::{Connection, Event, Parameters, Transport};
use pgoutput_tests::{Cluster, Options, wait_until};
use postgres_protocol::message::frontend;
use rustc_hash::FxHasher;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::workloads::Network;

/// The type and length of a CopyData message.
const COPY_DATA_HEADER: usize = 5;

/// A stream to read.
#[derive(Clone)]
pub struct Job {
    /// What the session is started with.
    pub parameters: Parameters,
    /// What it goes through.
    pub network: Network,
    /// The slot.
    pub slot: String,
    /// The options of START_REPLICATION.
    pub options: Options,
    /// The clock starts with the first message from here on, or when the stream is started.
    pub from: Option<Lsn>,
    /// Where it ends.
    pub until: Lsn,
}

/// What reading it took, and what came.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// From START_REPLICATION until everything has arrived.
    pub wall: Duration,
    /// What the walsender computed in that time, in all its walsenders where there are several.
    pub cpu: Duration,
    /// What came.
    pub content: Content,
}

/// What came, without keepalives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// How many messages.
    pub messages: u64,
    /// Their size with their frames.
    pub bytes: u64,
    /// Their payloads and places in the WAL, but not their send times, hashed.
    pub digest: u64,
}

/// Connects to a cluster in any way.
pub struct Connector {
    cluster: Arc<Cluster>,
    tls: Arc<ClientConfig>,
}

impl Connector {
    /// Gives the cluster a certificate, and the connections the trust in it.
    pub fn new(cluster: Arc<Cluster>) -> Result<Self> {
        const HOST: &str = "localhost";
        let certified = rcgen::generate_simple_self_signed([HOST.to_owned()])?;
        let directory = cluster.socket_directory();
        let mut client = cluster.client("postgres")?;
        for (setting, name, content) in [
            ("ssl_cert_file", "server.crt", certified.cert.pem()),
            ("ssl_key_file", "server.key", certified.signing_key.serialize_pem()),
        ] {
            let path = directory.join(name);
            fs::write(&path, content)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
            if let Some(user) = server_user()? {
                chown(&path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
            }
            client.batch_execute(&format!("ALTER SYSTEM SET {setting} = '{}'", path.display()))?;
        }
        client.batch_execute("ALTER SYSTEM SET ssl = on").context("this server has no TLS")?;
        client.batch_execute("SELECT pg_reload_conf()")?;
        wait_until("TLS", || Ok(client.query_one("SHOW ssl", &[])?.get::<_, &str>(0) == "on"))?;
        let mut roots = RootCertStore::empty();
        roots.add(certified.cert.der().clone())?;
        let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Connector { cluster, tls: Arc::new(tls) })
    }

    fn connect(&self, network: Network, parameters: &Parameters) -> Result<Connection> {
        Ok(match network {
            Network::Tcp => self.cluster.connect_tcp(parameters)?,
            Network::Unix => self.cluster.connect(parameters)?,
            Network::Tls => {
                let mut stream = TcpStream::connect(("127.0.0.1", self.cluster.port()))?;
                stream.set_nodelay(true)?;
                let mut request = BytesMut::new();
                frontend::ssl_request(&mut request);
                stream.write_all(&request)?;
                let mut answer = [0];
                stream.read_exact(&mut answer)?;
                ensure!(answer == *b"S", "the server refuses TLS");
                let session =
                    ClientConnection::new(Arc::clone(&self.tls), ServerName::try_from("localhost")?)?;
                Connection::over(Box::new(Tls(StreamOwned::new(session, stream))), USER, parameters)?
            }
        })
    }

    /// Reads streams at the same time.
    pub fn read(&self, jobs: &[Job]) -> Result<Measure> {
        let connections =
            jobs.iter().map(|job| self.connect(job.network, &job.parameters)).collect::<Result<Vec<_>>>()?;
        let barrier = Barrier::new(jobs.len());
        let measures = thread::scope(|scope| {
            let readers: Vec<_> = jobs
                .iter()
                .zip(connections)
                .map(|(job, connection)| {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        barrier.wait();
                        read(connection, job)
                    })
                })
                .collect();
            readers
                .into_iter()
                .map(|reader| match reader.join() {
                    Ok(measure) => measure,
                    Err(_) => bail!("the client panicked"),
                })
                .collect::<Result<Vec<_>>>()
        })?;
        for job in jobs {
            self.cluster.wait_for_slot(&job.slot)?;
        }
        let mut all = *measures.first().context("nothing to read")?;
        for measure in &measures[1..] {
            ensure!(measure.content == all.content, "slots at the same place bring different streams");
            all.wall = all.wall.max(measure.wall);
            all.cpu += measure.cpu;
        }
        Ok(all)
    }
}

/// Reads a stream without confirming anything, so that the slot stays where it is.
fn read(mut connection: Connection, job: &Job) -> Result<Measure> {
    let walsender = connection.backend_pid();
    let mut content = Content::default();
    let mut hasher = FxHasher::default();
    let mut began = (Instant::now(), cpu_time(walsender)?);
    let mut from = job.from;
    connection.start_replication(&job.slot, Lsn(0), &job.options)?;
    loop {
        match connection.event()? {
            Event::Frame(ServerFrame::XLogData(frame)) => {
                if let Some(lsn) = from {
                    if frame.start < lsn {
                        continue;
                    }
                    from = None;
                    began = (Instant::now(), cpu_time(walsender)?);
                }
                content.messages += 1;
                content.bytes += (COPY_DATA_HEADER + PAYLOAD_OFFSET + frame.payload.len()) as u64;
                hasher.write_u64(frame.start.0);
                hasher.write_u64(frame.end.0);
                hasher.write(frame.payload);
            }
            // The server sends one as soon as it has sent everything.
            Event::Frame(ServerFrame::Keepalive(keepalive)) => {
                if keepalive.end >= job.until {
                    break;
                }
                if keepalive.reply_requested {
                    connection.status_update(Lsn(0), false)?;
                }
            }
            Event::Notice(notice) => bail!("an unexpected notice: {notice}"),
            Event::End => bail!("the stream ended too early"),
        }
    }
    let wall = began.0.elapsed();
    // The kernel is late with the account of a process that runs.
    wait_until("the walsender to be idle", || is_asleep(walsender))?;
    let cpu = cpu_time(walsender)?.saturating_sub(began.1);
    content.digest = hasher.finish();
    Ok(Measure { wall, cpu, content })
}

/// What a process has computed so far, in user and in kernel mode.
fn cpu_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/schedstat");
    let text = fs::read_to_string(&path).with_context(|| format!("can't read {path}"))?;
    let nanoseconds = text.split(' ').next().and_then(|field| field.parse().ok());
    Ok(Duration::from_nanos(nanoseconds.with_context(|| format!("{path} has {text}"))?))
}

fn is_asleep(pid: u32) -> Result<bool> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    Ok(stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" S")))
}

struct Tls(StreamOwned<ClientConnection, TcpStream>);

impl Read for Tls {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Tls {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Transport for Tls {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.0.sock.set_timeout(timeout)
    }
}
