//! One run of a program: feed it, listen to it, and see to it that it ends.

use crate::child::{Child, Children, Ended, Start};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// What is kept of standard error: its end.
const STDERR_KEPT_BYTES: usize = 16 * 1024;

/// How often it is looked whether there are many more processes than before, and how often they are counted anyway.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const COUNT_EVERY: Duration = Duration::from_millis(250);

/// How long what a program wrote may take to arrive after it has ended. Only a descendant that hid from us and holds the
/// pipe open makes us wait that long.
const LAST_WORDS: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub timeout: Duration,
    pub grace: Duration,
    pub output_kib: u64,
    pub processes: u64,
}

#[derive(Debug)]
pub(crate) enum Ran {
    /// Nothing was started; why.
    Never(String),
    Ended {
        ended: Ended,
        stdout: Vec<u8>,
        /// The end of it.
        stderr: Vec<u8>,
        cut: Option<Cut>,
    },
}

/// Why a program was made to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Timeout,
    Cancelled,
    Output,
    Processes,
}

pub(crate) async fn run(
    children: &Children,
    start: Start,
    bounds: &Bounds,
    input: Vec<u8>,
    cancel: impl Future<Output = ()>,
) -> Ran {
    let mut child = match children.start(start).await {
        Ok(child) => child,
        Err(error) => return Ran::Never(error.to_string()),
    };
    let (stdout, stderr) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let too_much = Notify::new();
    let output_max = usize::try_from(bounds.output_kib.saturating_mul(1024)).unwrap_or(usize::MAX);
    let talk = async {
        tokio::join!(
            feed(stdin, &input),
            keep_first(out, &stdout, output_max, &too_much),
            keep_last(err, &stderr)
        )
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
        Some(why) => Ran::Never(why),
        None => Ran::Ended { ended, stdout, stderr, cut },
    }
}

/// Waits for the end of a program, and makes it end when it must.
async fn see_it_end(
    child: &Child,
    bounds: &Bounds,
    cancel: impl Future<Output = ()>,
    too_much: &Notify,
) -> (Ended, Option<Cut>) {
    let cut = tokio::select! {
        ended = child.ended() => return (ended, None),
        () = sleep(bounds.timeout) => Cut::Timeout,
        () = cancel => Cut::Cancelled,
        () = too_much.notified() => Cut::Output,
        () = too_many(child, bounds.processes) => Cut::Processes,
    };
    // What multiplies is not asked: every moment there is more of it.
    if cut != Cut::Processes {
        child.terminate();
        if let Ok(ended) = timeout(bounds.grace, child.ended()).await {
            return (ended, Some(cut));
        }
    }
    child.kill();
    (child.ended().await, Some(cut))
}

/// Returns when there are more processes than there may be. The system itself does not hold the superuser to that, and
/// what multiplies must be noticed before it takes the time to notice it: so the total is looked at often, which costs
/// next to nothing, and the group is counted when that has grown, or from time to time.
async fn too_many(child: &Child, processes_max: u64) {
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

/// How many threads the whole system has, as far as it says so.
fn total() -> u64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let total = text.split(' ').nth(3).and_then(|counts| counts.split_once('/')?.1.parse().ok());
    total.unwrap_or(0)
}

async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        // A program need not read what it is given.
        let _ = stdin.write_all(input).await;
    }
}

/// Keeps what fits. What follows is read and thrown away, so that the program is not stuck when it is asked to end.
async fn keep_first(
    pipe: Option<impl AsyncRead + Unpin>,
    kept: &Mutex<Vec<u8>>,
    bytes_max: usize,
    too_much: &Notify,
) {
    read_all(pipe, |chunk| {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = bytes_max - kept.len();
        kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            too_much.notify_one();
        }
    })
    .await;
}

async fn keep_last(pipe: Option<impl AsyncRead + Unpin>, kept: &Mutex<Vec<u8>>) {
    read_all(pipe, |chunk| {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(chunk);
        let excess = kept.len().saturating_sub(STDERR_KEPT_BYTES);
        kept.drain(..excess);
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
