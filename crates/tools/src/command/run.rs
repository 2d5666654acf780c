//! One run of a program: writes its input, reads its output, and makes sure that it ends.

use crate::child::{ChildProcess, ChildSpawner, ProgramExit, ProgramStart};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// How much of the end of standard error is kept.
const STDERR_BYTES_MAX: usize = 16 * 1024;

/// How often the system's thread count is read, and how often the program's processes are counted in any case.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const COUNT_EVERY: Duration = Duration::from_millis(250);

/// How long the output of a program may take to arrive after its end. Only a hidden descendant that holds the pipe
/// open makes us wait that long.
const LAST_WORDS: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramBounds {
    pub timeout: Duration,
    pub grace: Duration,
    pub output_kib: u64,
    pub processes: u64,
}

#[derive(Debug)]
pub(crate) enum ProgramRun {
    /// Nothing was started, for this reason.
    Never(String),
    Ended {
        ended: ProgramExit,
        stdout: Vec<u8>,
        /// The end of it.
        stderr: Vec<u8>,
        cut: Option<CutReason>,
    },
}

/// Why a program was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutReason {
    Timeout,
    Cancelled,
    Output,
    Processes,
}

pub(crate) async fn run(
    children: &ChildSpawner,
    start: ProgramStart,
    bounds: &ProgramBounds,
    input: Vec<u8>,
    cancel: impl Future<Output = ()>,
) -> ProgramRun {
    let mut child = match children.start(start).await {
        Ok(child) => child,
        Err(error) => return ProgramRun::Never(error.to_string()),
    };
    let (stdout, stderr) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let too_much = Notify::new();
    let output_max = usize::try_from(bounds.output_kib.saturating_mul(1024)).unwrap_or(usize::MAX);
    let talk = async {
        tokio::join!(feed(stdin, &input), keep_first(out, &stdout, output_max, &too_much), keep_last(err, &stderr))
    };
    let over = child.ended();
    let listen = async {
        let silence = async {
            over.await;
            sleep(LAST_WORDS).await;
        };
        tokio::select! {
            _ = talk => {}
            () = silence => {}
        }
    };
    let ((ended, cut), ()) = tokio::join!(see_it_end(&child, bounds, cancel, &too_much), listen);
    let stdout = stdout.into_inner().unwrap_or_else(PoisonError::into_inner);
    let stderr = stderr.into_inner().unwrap_or_else(PoisonError::into_inner);
    match child.never_ran(ended, &stderr) {
        Some(why) => ProgramRun::Never(why),
        None => ProgramRun::Ended { ended, stdout, stderr, cut },
    }
}

/// Waits for the end of a program, and stops it when it must end.
async fn see_it_end(
    child: &ChildProcess,
    bounds: &ProgramBounds,
    cancel: impl Future<Output = ()>,
    too_much: &Notify,
) -> (ProgramExit, Option<CutReason>) {
    let cut = tokio::select! {
        ended = child.ended() => return (ended, None),
        () = sleep(bounds.timeout) => CutReason::Timeout,
        () = cancel => CutReason::Cancelled,
        () = too_much.notified() => CutReason::Output,
        () = too_many(child, bounds.processes) => CutReason::Processes,
    };
    // A fork bomb gets no grace period: it keeps growing.
    if cut != CutReason::Processes {
        child.terminate();
        if let Ok(ended) = timeout(bounds.grace, child.ended()).await {
            return (ended, Some(cut));
        }
    }
    child.kill();
    (child.ended().await, Some(cut))
}

/// Returns when there are more processes than allowed. The kernel does not enforce that limit for root, and a fork
/// bomb must be noticed before it starves us: so the system's total is read often, which costs next to nothing, and
/// the group is counted when that has grown, or from time to time.
async fn too_many(child: &ChildProcess, processes_max: u64) {
    let mut total_counted = total();
    let mut counted = Instant::now();
    loop {
        sleep(LOOK_EVERY).await;
        let total = total();
        if total < total_counted.saturating_add(processes_max) && counted.elapsed() < COUNT_EVERY {
            continue;
        }
        if child.processes().await as u64 > processes_max {
            return;
        }
        (total_counted, counted) = (total, Instant::now());
    }
}

/// How many threads the whole system has; 0 if unknown.
fn total() -> u64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let total = text.split(' ').nth(3).and_then(|counts| counts.split_once('/')?.1.parse().ok());
    total.unwrap_or(0)
}

async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        // A program need not read its input.
        let _ = stdin.write_all(input).await;
    }
}

/// Keeps what fits. The rest is read and discarded, so that the program is not blocked when it is asked to end.
async fn keep_first(
    pipe: Option<impl AsyncRead + Unpin>,
    stored: &Mutex<Vec<u8>>,
    bytes_max: usize,
    too_much: &Notify,
) {
    read_all(pipe, |chunk| {
        let mut retained = stored.lock().unwrap_or_else(PoisonError::into_inner);
        let room = bytes_max - retained.len();
        retained.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            too_much.notify_one();
        }
    })
    .await;
}

async fn keep_last(pipe: Option<impl AsyncRead + Unpin>, stored: &Mutex<Vec<u8>>) {
    read_all(pipe, |chunk| {
        let mut retained = stored.lock().unwrap_or_else(PoisonError::into_inner);
        retained.extend_from_slice(chunk);
        let excess = retained.len().saturating_sub(STDERR_BYTES_MAX);
        retained.drain(..excess);
    })
    .await;
}

async fn read_all(pipe: Option<impl AsyncRead + Unpin>, mut keep: impl FnMut(&[u8])) {
    let Some(mut pipe) = pipe else { return };
    let mut chunk = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = pipe.read(&mut chunk).await {
        keep(&chunk[..length]);
    }
}
