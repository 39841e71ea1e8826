//! A cluster in a temporary directory, for as long as a test needs it.

use std::collections::HashMap;
use std::env;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;
use pgoutput_protocol::Lsn;
use postgres::{Client, NoTls};

use crate::server::{Server, output, plugin, run_as_server_user};
use crate::wire::{Connection, Parameters};
use crate::{TIMEOUT, quote, wait_until, workdir};

/// The environment variable with `pgoutput_rs.flush_bytes` for every cluster, in place of the default.
const FLUSH_BYTES: &str = "PGOUTPUT_RS_TEST_FLUSH_BYTES";

/// The superuser of every cluster.
pub const USER: &str = "postgres";

/// What a cluster is made with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    encoding: String,
    locale: String,
    configuration: Vec<(String, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { encoding: "UTF8".to_owned(), locale: "C".to_owned(), configuration: Vec::new() }
    }
}

impl Settings {
    /// The encoding of the databases, in place of UTF8.
    pub fn encoding(mut self, encoding: &str) -> Self {
        encoding.clone_into(&mut self.encoding);
        self
    }

    /// The locale of the databases, in place of C.
    pub fn locale(mut self, locale: &str) -> Self {
        locale.clone_into(&mut self.locale);
        self
    }

    /// A line of `postgresql.conf`.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.configuration.push((name.to_owned(), value.to_owned()));
        self
    }

    /// `dynamic_library_path` that puts the extension in the place of `pgoutput`.
    ///
    /// When the tests compare the built-in plugin with itself, there is nothing to put.
    pub fn in_place(self, server: &Server) -> Self {
        if plugin() == "pgoutput" {
            return self;
        }
        self.set("dynamic_library_path", &server.in_place_path())
    }
}

/// How a cluster is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Sessions are ended, and a checkpoint is written.
    Fast,
    /// As a crash: the next start recovers.
    Immediate,
}

/// A cluster that runs, or is stopped in between. Dropping it ends and removes it.
#[derive(Debug)]
pub struct Cluster {
    server: Arc<Server>,
    directory: PathBuf,
    port: u16,
    postmaster: Mutex<Option<Child>>,
    databases: AtomicU64,
}

impl Cluster {
    /// Makes and starts a cluster.
    ///
    /// # Errors
    ///
    /// When that fails, with the server's log.
    pub fn start(server: &Arc<Server>, settings: &Settings) -> Result<Cluster> {
        let template = template(server, settings)?;
        let directory = workdir::new_path("")?;
        workdir::create_for_server(&directory)?;
        let data = directory.join("data");
        let mut copy = Command::new("cp");
        copy.args(["-a", "--reflink=auto"]).arg(&template).arg(&data);
        output(&mut copy).context("can't copy the template of the data directory")?;
        write_configuration(&data.join("postgresql.conf"), server, settings)?;
        let mut cluster = Cluster {
            server: Arc::clone(server),
            directory,
            port: 0,
            postmaster: Mutex::new(None),
            databases: AtomicU64::new(0),
        };
        // A port that is free now may be taken when the server starts.
        for _ in 0..5 {
            let before = cluster.log_length();
            cluster.port = free_port()?;
            match cluster.start_again() {
                Err(_) if cluster.log_since(before).contains("could not bind") => {}
                result => return result.map(|()| cluster),
            }
        }
        bail!("no port of 127.0.0.1 is free")
    }

    /// The installation it is of.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// The TCP port, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts the server after a stop.
    ///
    /// # Errors
    ///
    /// When it doesn't start, with its log.
    pub fn start_again(&self) -> Result<()> {
        let mut postmaster = self.postmaster.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(postmaster.is_none(), "the server runs already");
        let log = OpenOptions::new().create(true).append(true).open(self.log_path())?;
        let mut command = self.server.program("postgres");
        command
            .arg("-D")
            .arg(self.directory.join("data"))
            .arg("-k")
            .arg(&self.directory)
            .args(["-p", &self.port.to_string()])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        run_as_server_user(&mut command)?;
        let mut child = workdir::spawn_postmaster(command).context("can't start postgres")?;
        let status_file = self.directory.join("data/postmaster.pid");
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = child.try_wait()? {
                workdir::forget(child.id());
                bail!("{} ended when it was started ({status}):\n{}", self.server, self.log());
            }
            // "ready" on line 8, of a file that may be left from the run before.
            let status = fs::read_to_string(&status_file).unwrap_or_default();
            let mut lines = status.lines();
            if lines.next() == Some(child.id().to_string().as_str())
                && lines.nth(6).is_some_and(|line| line.trim() == "ready")
            {
                break;
            }
            if Instant::now() > deadline {
                let _ = workdir::signal(child.id(), Signal::SIGQUIT);
                let _ = child.wait();
                workdir::forget(child.id());
                bail!("{} doesn't get ready:\n{}", self.server, self.log());
            }
            thread::sleep(Duration::from_millis(5));
        }
        *postmaster = Some(child);
        Ok(())
    }

    /// Stops the server and waits for its end.
    ///
    /// # Errors
    ///
    /// When it isn't running or doesn't stop.
    pub fn stop(&self, how: Stop) -> Result<ExitStatus> {
        let mut postmaster = self.postmaster.lock().unwrap_or_else(PoisonError::into_inner);
        let mut child = postmaster.take().context("the server doesn't run")?;
        let status = stop_postmaster(&mut child, how);
        status.with_context(|| format!("{} doesn't stop:\n{}", self.server, self.log()))
    }

    /// Crashes the server and starts it again, so that it recovers.
    ///
    /// # Errors
    ///
    /// When it doesn't stop or start.
    pub fn crash(&self) -> Result<()> {
        self.stop(Stop::Immediate)?;
        self.start_again()
    }

    /// What the server logged.
    pub fn log(&self) -> String {
        self.log_since(0)
    }

    /// How long the log is, for [`Cluster::log_since`].
    pub fn log_length(&self) -> u64 {
        fs::metadata(self.log_path()).map_or(0, |log| log.len())
    }

    /// What the server logged from a length on.
    pub fn log_since(&self, length: u64) -> String {
        let mut log = Vec::new();
        if let Ok(mut file) = fs::File::open(self.log_path()) {
            let _ = file.seek(SeekFrom::Start(length)).and_then(|_| file.read_to_end(&mut log));
        }
        String::from_utf8_lossy(&log).into_owned()
    }

    fn log_path(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// The directory of the server's socket.
    pub fn socket_directory(&self) -> &Path {
        &self.directory
    }

    /// A session in a database.
    ///
    /// # Errors
    ///
    /// When it can't connect.
    pub fn client(&self, database: &str) -> Result<Client> {
        postgres::Config::new()
            .host_path(&self.directory)
            .port(self.port)
            .user(USER)
            .dbname(database)
            // A test that hangs says where.
            .options(&format!("-c statement_timeout={}", TIMEOUT.as_millis()))
            .connect(NoTls)
            .with_context(|| format!("can't connect to {} of {}", database, self.server))
    }

    /// A connection that shows what the server really sends.
    ///
    /// # Errors
    ///
    /// When it can't connect.
    pub fn connect(&self, parameters: &Parameters) -> Result<Connection, crate::wire::Error> {
        let socket = self.directory.join(format!(".s.PGSQL.{}", self.port));
        Connection::unix(&socket, USER, parameters)
    }

    /// As [`Cluster::connect`], over TCP as subscribers mostly are.
    ///
    /// # Errors
    ///
    /// When it can't connect.
    pub fn connect_tcp(&self, parameters: &Parameters) -> Result<Connection, crate::wire::Error> {
        Connection::tcp(("127.0.0.1", self.port), USER, parameters)
    }

    /// The connection string of a subscription to this cluster.
    pub fn connection_string(&self, database: &str) -> String {
        format!("host=127.0.0.1 port={} user={USER} dbname={database}", self.port)
    }

    /// A client program of the installation, which connects to this cluster.
    pub fn program(&self, name: &str) -> Command {
        let mut command = self.server.program(name);
        command
            .env("PGHOST", &self.directory)
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", USER)
            .current_dir("/");
        command
    }

    /// Runs a script as psql does: each statement is a transaction of its own, if the script doesn't say otherwise.
    ///
    /// # Errors
    ///
    /// When a statement fails, which ends the script.
    pub fn run_script(&self, database: &str, script: &str) -> Result<()> {
        let mut psql = self.program("psql");
        psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", database]).stdin(Stdio::piped());
        psql.stdout(Stdio::null()).stderr(Stdio::piped()).env("PGCLIENTENCODING", "UTF8");
        let mut psql = psql.spawn().context("can't run psql")?;
        let mut stdin = psql.stdin.take().context("no standard input")?;
        // When psql ends before the end of the script, its own words tell why.
        let _ = stdin.write_all(script.as_bytes());
        drop(stdin);
        let output = psql.wait_with_output()?;
        ensure!(output.status.success(), "psql failed:\n{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Makes a database with a name of its own.
    ///
    /// # Errors
    ///
    /// When that fails.
    pub fn create_database(&self) -> Result<String> {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.create_database_named(&name)?;
        Ok(name)
    }

    /// Makes a database.
    ///
    /// # Errors
    ///
    /// When that fails.
    pub fn create_database_named(&self, name: &str) -> Result<()> {
        self.client("postgres")?.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE template0"))?;
        Ok(())
    }

    /// The end of the WAL that is on disk, after which nothing of what was committed before is.
    ///
    /// # Errors
    ///
    /// When the server doesn't answer.
    pub fn flushed(&self, database: &str) -> Result<Lsn> {
        let mut client = self.client(database)?;
        // Commits of other sessions may have been asynchronous: this one isn't, and brings them to disk.
        client.batch_execute("SET synchronous_commit = on; SELECT pg_logical_emit_message(true, '', '')")?;
        let row = client.query_one("SELECT pg_current_wal_flush_lsn()::text", &[])?;
        let lsn: &str = row.get(0);
        lsn.parse().map_err(|_| anyhow::anyhow!("not an LSN: {lsn}"))
    }

    /// Waits until nobody uses a slot.
    ///
    /// # Errors
    ///
    /// When it stays in use, or there is no such slot.
    pub fn wait_for_slot(&self, slot: &str) -> Result<()> {
        let mut client = self.client("postgres")?;
        wait_until(&format!("slot {slot} to be free"), || {
            let row =
                client.query_one("SELECT active FROM pg_replication_slots WHERE slot_name = $1", &[&slot])?;
            Ok(!row.get::<_, bool>(0))
        })
    }

    /// The libraries that a server process has mapped, such as `/…/pgoutput.so`.
    ///
    /// # Errors
    ///
    /// When there is no such process, or it is somebody else's.
    pub fn libraries(&self, pid: u32) -> Result<Vec<PathBuf>> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))
            .with_context(|| format!("can't see what process {pid} has mapped"))?;
        let mut libraries: Vec<_> = maps
            .lines()
            .filter_map(|line| line.find('/').map(|start| &line[start..]))
            .filter(|path| path.ends_with(".so"))
            .map(PathBuf::from)
            .collect();
        libraries.dedup();
        Ok(libraries)
    }

    /// The walsender that uses a slot, as soon as there is one.
    ///
    /// # Errors
    ///
    /// When none comes.
    pub fn walsender(&self, slot: &str) -> Result<u32> {
        let mut client = self.client("postgres")?;
        let mut pid = 0;
        wait_until(&format!("a walsender on slot {slot}"), || {
            let rows =
                client.query("SELECT active_pid FROM pg_replication_slots WHERE slot_name = $1", &[&slot])?;
            pid = rows.first().and_then(|row| row.get::<_, Option<i32>>(0)).unwrap_or(0);
            Ok(pid != 0)
        })?;
        Ok(pid.cast_unsigned())
    }

    /// What a process has in its memory contexts, in bytes: what it took from the system, and what of it is used.
    ///
    /// # Errors
    ///
    /// When it doesn't say so in the log.
    pub fn memory_contexts(&self, pid: u32) -> Result<(u64, u64)> {
        let before = self.log_length();
        self.client("postgres")?
            .execute("SELECT pg_log_backend_memory_contexts($1)", &[&pid.cast_signed()])?;
        let mut found = None;
        wait_until(&format!("process {pid} to log its memory contexts"), || {
            let log = self.log_since(before);
            found = log
                .lines()
                .filter(|line| line.contains(&format!("[{pid}]")))
                .find_map(|line| line.split_once("Grand total: ").map(|(_, total)| total.to_owned()));
            Ok(found.is_some())
        })?;
        // N bytes in N blocks; N free (N chunks); N used
        let line = found.context("no total")?;
        let number = |text: Option<&str>| -> Option<u64> { text?.trim().split(' ').next()?.parse().ok() };
        let total = number(Some(line.as_str()));
        let used = number(line.rsplit("; ").next());
        total.zip(used).with_context(|| format!("not a total: {line}"))
    }

    /// Drops all subscriptions, so that they don't connect to their publishers any more.
    ///
    /// # Errors
    ///
    /// When one can't be dropped.
    pub fn drop_subscriptions(&self) -> Result<()> {
        for database in databases(&mut self.client("postgres")?)? {
            let mut inside = self.client(&database)?;
            for row in inside.query(
                "SELECT subname FROM pg_subscription s JOIN pg_database d ON d.oid = subdbid \
                                     WHERE datname = current_database()",
                &[],
            )? {
                let name = quote::identifier(row.get(0));
                inside.batch_execute(&format!("ALTER SUBSCRIPTION {name} DISABLE"))?;
                inside.batch_execute(&format!("ALTER SUBSCRIPTION {name} SET (slot_name = NONE)"))?;
                inside.batch_execute(&format!("DROP SUBSCRIPTION {name}"))?;
            }
        }
        Ok(())
    }

    /// Removes databases, slots, subscriptions, origins and roles that a test left, so that the next finds a new cluster.
    ///
    /// # Errors
    ///
    /// When something can't be removed.
    pub fn clean(&self) -> Result<()> {
        self.drop_subscriptions()?;
        let mut client = self.client("postgres")?;
        let databases = databases(&mut client)?;
        client.batch_execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE pid <> pg_backend_pid() AND backend_type IN ('client backend', 'walsender')",
        )?;
        wait_until("slots to be free", || {
            Ok(client.query("SELECT 1 FROM pg_replication_slots WHERE active", &[])?.is_empty())
        })?;
        client.batch_execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots;
             SELECT pg_replication_origin_drop(roname) FROM pg_replication_origin",
        )?;
        for row in client.query("SELECT gid, database FROM pg_prepared_xacts", &[])? {
            let (gid, database): (String, String) = (row.get(0), row.get(1));
            self.client(&database)?.batch_execute(&format!("ROLLBACK PREPARED {}", quote::literal(&gid)))?;
        }
        for database in databases {
            client.batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", quote::identifier(&database)))?;
        }
        for row in client.query("SELECT rolname FROM pg_roles WHERE oid >= 16384", &[])? {
            client.batch_execute(&format!("DROP ROLE {}", quote::identifier(row.get(0))))?;
        }
        Ok(())
    }
}

/// The databases that tests made.
fn databases(client: &mut Client) -> Result<Vec<String>> {
    let rows =
        client.query("SELECT datname FROM pg_database WHERE datname !~ '^(postgres|template.)$'", &[])?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let postmaster = self.postmaster.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut child) = postmaster.take() {
            let _ = stop_postmaster(&mut child, Stop::Immediate);
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn stop_postmaster(child: &mut Child, how: Stop) -> Result<ExitStatus> {
    let signal = match how {
        Stop::Fast => Signal::SIGINT,
        Stop::Immediate => Signal::SIGQUIT,
    };
    workdir::signal(child.id(), signal)?;
    let mut status = None;
    let stopped = wait_until("the postmaster to end", || {
        status = child.try_wait()?;
        Ok(status.is_some())
    });
    if stopped.is_err() {
        // Its children see that it is gone, and end.
        child.kill()?;
        child.wait()?;
    }
    workdir::forget(child.id());
    stopped?;
    status.context("no exit status")
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A data directory to copy: `initdb` takes a second.
fn template(server: &Arc<Server>, settings: &Settings) -> Result<PathBuf> {
    type Key = (PathBuf, String, String);
    static TEMPLATES: LazyLock<Mutex<HashMap<Key, PathBuf>>> = LazyLock::new(Mutex::default);
    let key = (server.bindir.clone(), settings.encoding.clone(), settings.locale.clone());
    let mut templates = TEMPLATES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = templates.get(&key) {
        return Ok(path.clone());
    }
    let path = workdir::new_path("template")?;
    workdir::create_for_server(&path)?;
    let mut initdb = server.program("initdb");
    initdb.arg("-D").arg(&path).args([
        "-U",
        USER,
        "-A",
        "trust",
        "--no-sync",
        "-E",
        &settings.encoding,
        "--locale",
        &settings.locale,
    ]);
    run_as_server_user(&mut initdb)?;
    output(&mut initdb)?;
    templates.insert(key, path.clone());
    Ok(path)
}

fn write_configuration(path: &Path, server: &Server, settings: &Settings) -> Result<()> {
    let mut text = fs::read_to_string(path)?;
    text.push_str(
        "
listen_addresses = '127.0.0.1'
max_connections = 100
wal_level = logical
max_wal_senders = 60
max_replication_slots = 100
max_worker_processes = 80
max_logical_replication_workers = 60
max_sync_workers_per_subscription = 20
max_prepared_transactions = 50
wal_retrieve_retry_interval = 200ms
# Its ANALYZE would make the plugins send Relation again.
autovacuum = off
fsync = off
shared_buffers = 64MB
max_wal_size = 4GB
log_line_prefix = '%m [%p] %b %d '
timezone = 'UTC'
",
    );
    if server.has_plugin_allow_list {
        // A list of names: in quotes it would be one name.
        text.push_str("output_plugin_libraries = 'pgoutput, test_decoding, pgoutput_rs'\n");
    }
    if let Some(bytes) = env::var_os(FLUSH_BYTES) {
        writeln!(text, "pgoutput_rs.flush_bytes = {}", quote::literal(&bytes.to_string_lossy()))?;
    }
    for (name, value) in &settings.configuration {
        writeln!(text, "{name} = {}", quote::literal(value))?;
    }
    fs::write(path, text)?;
    Ok(())
}
