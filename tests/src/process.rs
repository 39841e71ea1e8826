//! What the system tells of a server process, and what can be done to it from outside.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::Signal;

use crate::workdir::signal;

/// What a process takes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessMemory {
    /// What it has in memory, shared with others or not.
    pub resident: u64,
    /// The most that ever was resident.
    pub peak: u64,
    /// What is resident of its own memory: without files and memory that it shares.
    pub anonymous: u64,
}

impl ProcessMemory {
    /// Of a process that runs.
    ///
    /// # Errors
    ///
    /// When there is no such process.
    pub fn of(pid: u32) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))
            .with_context(|| format!("there is no process {pid}"))?;
        let bytes = |name: &str| -> Result<u64> {
            let text = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let kilobytes: Option<u64> =
                text.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok());
            Ok(kilobytes.with_context(|| format!("process {pid} has no {name}"))? * 1024)
        };
        Ok(ProcessMemory { resident: bytes("VmRSS")?, peak: bytes("VmHWM")?, anonymous: bytes("RssAnon")? })
    }
}

/// Whether there is such a process.
pub fn exists(pid: u32) -> bool {
    signal(pid, None).is_ok()
}

/// A process that is stopped again and again and so gets a small part of its time. Dropping this lets it run.
#[derive(Debug)]
pub struct SlowedDown {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SlowedDown {
    /// Lets a process run for so long out of a hundred milliseconds.
    pub fn new(pid: u32, runs: Duration) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        let stopped = Duration::from_millis(100).saturating_sub(runs);
        let thread = thread::spawn(move || {
            while !ended.load(Ordering::SeqCst) && signal(pid, Signal::SIGSTOP).is_ok() {
                thread::sleep(stopped);
                let _ = signal(pid, Signal::SIGCONT);
                thread::sleep(runs);
            }
        });
        SlowedDown { end, thread: Some(thread) }
    }
}

impl Drop for SlowedDown {
    fn drop(&mut self) {
        self.end.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
