//! The directory for everything that the clusters of this process write, and the processes that must not survive it.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::{env, process, thread};

use anyhow::{Context, Result};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, chown, getppid};

use crate::server::server_user;

const PREFIX: &str = "pgoutput_rs-test.";

struct WorkDir {
    path: PathBuf,
    /// Held as long as the process lives: who can lock it may remove the directory.
    _lock: File,
}

static WORK_DIR: OnceLock<WorkDir> = OnceLock::new();

/// Postmasters that run, for [`stop_everything`].
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// A new path in the work directory of this process; nothing is there yet.
///
/// The directory is removed by [`remove`], when the process is interrupted, or by the next process that uses
/// the harness. Directories of processes that were killed are removed here.
///
/// # Errors
///
/// When no directory can be made.
pub(crate) fn new_path(name: &str) -> Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    static CREATION: Mutex<()> = Mutex::new(());
    let guard = CREATION.lock().unwrap_or_else(PoisonError::into_inner);
    if WORK_DIR.get().is_none() {
        // Nobody else is here: the lock is held.
        let _ = WORK_DIR.set(create()?);
        ctrlc::set_handler(|| {
            stop_everything();
            process::exit(130);
        })
        .context("can't watch for interrupts")?;
    }
    drop(guard);
    let directory = WORK_DIR.get().context("the work directory is gone")?;
    Ok(directory.path.join(format!("{name}{}", NUMBER.fetch_add(1, Ordering::Relaxed))))
}

/// Makes a directory that the servers may write to.
pub(crate) fn create_for_server(path: &Path) -> Result<()> {
    fs::create_dir(path).with_context(|| format!("can't create {}", path.display()))?;
    if let Some(user) = server_user()? {
        chown(path, Some(user.uid), Some(user.gid))?;
    }
    fs::set_permissions(path, Permissions::from_mode(0o700))?;
    Ok(())
}

/// Stops what runs at once and removes the work directory.
pub fn remove() {
    stop_everything();
}

fn create() -> Result<WorkDir> {
    // Short, for the path of a socket has room for about a hundred bytes.
    let parent = env::var_os("PGOUTPUT_RS_TEST_DIR").map_or_else(env::temp_dir, PathBuf::from);
    sweep(&parent);
    let path = parent.join(format!("{PREFIX}{}", process::id()));
    fs::create_dir(&path).with_context(|| {
        format!("can't create {}: set PGOUTPUT_RS_TEST_DIR to a directory with room", path.display())
    })?;
    fs::set_permissions(&path, Permissions::from_mode(0o711))?;
    let lock = File::create(path.join("lock"))?;
    lock.lock()?;
    Ok(WorkDir { path, _lock: lock })
}

/// Removes the directories of processes that live no more.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        // Opened, not created: a directory without the file is one that is just being made.
        let Ok(lock) = File::open(entry.path().join("lock")) else { continue };
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            continue;
        }
        let _ = fs::remove_dir_all(entry.path());
    }
}

fn stop_everything() {
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for pid in &running {
        let _ = signal(*pid, Signal::SIGQUIT);
    }
    for pid in running {
        // Until it is gone or nobody but its waiting parent, this process, knows of it.
        while signal(pid, None).is_ok() && !is_zombie(pid) {
            thread::sleep(std::time::Duration::from_millis(10));
        }
    }
    if let Some(directory) = WORK_DIR.get() {
        let _ = fs::remove_dir_all(&directory.path);
    }
}

fn is_zombie(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" Z")))
}

/// Sends a signal to a process.
pub(crate) fn signal(pid: u32, signal: impl Into<Option<Signal>>) -> nix::Result<()> {
    kill(Pid::from_raw(pid.cast_signed()), signal)
}

/// Forgets a postmaster that has ended.
pub(crate) fn forget(pid: u32) {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).retain(|running| *running != pid);
}

/// Starts a postmaster that is shut down at once (SIGQUIT) when this process ends, however it ends.
pub(crate) fn spawn_postmaster(mut command: Command) -> io::Result<Child> {
    let parent = Pid::this();
    command.process_group(0);
    // SAFETY: between fork and exec the closure makes two system calls and neither allocates nor locks.
    unsafe {
        command.pre_exec(move || {
            // Here, not before: a change of user clears it, and std changes the user before it calls this.
            set_pdeathsig(Signal::SIGQUIT)?;
            if getppid() != parent {
                return Err(io::Error::other("the parent has ended"));
            }
            Ok(())
        });
    }

    // The signal comes when the *thread* that forked ends: this one never does.
    type Request = (Command, mpsc::Sender<io::Result<Child>>);
    static SPAWNER: OnceLock<mpsc::Sender<Request>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, requests) = mpsc::channel::<Request>();
        thread::spawn(move || {
            for (mut command, reply) in requests {
                let _ = reply.send(command.spawn());
            }
        });
        sender
    });
    let (reply, child) = mpsc::channel();
    spawner.send((command, reply)).map_err(io::Error::other)?;
    let child = child.recv().map_err(io::Error::other)??;
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(child.id());
    Ok(child)
}
