//! Reader threads, each with a read-only connection of its own. None waits for the writer.

use super::connection::DatabaseFile;
use rusqlite::Connection;
use rutter_core::port::{Error, StoreFuture};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use tokio::sync::{mpsc, oneshot};

/// The capacity of the queue; further callers wait.
const QUEUE_MAX: usize = 1_024;

type ReadJob = Box<dyn FnOnce(Result<&mut Connection, Error>) + Send>;

#[derive(Debug)]
pub(super) struct ReaderPool {
    requests: mpsc::Sender<ReadJob>,
}

impl ReaderPool {
    /// Starts the threads; they end when the pool is dropped.
    pub fn start(file: &DatabaseFile, count: usize) -> std::io::Result<(ReaderPool, Vec<JoinHandle<()>>)> {
        let (requests, queue) = mpsc::channel::<ReadJob>(QUEUE_MAX);
        let queue = Arc::new(Mutex::new(queue));
        let threads = (0..count.max(1)).map(|_| {
            let (queue, file) = (Arc::clone(&queue), file.clone());
            thread::Builder::new().name("rutter-read".to_owned()).spawn(move || serve(&queue, &file))
        });
        Ok((ReaderPool { requests }, threads.collect::<std::io::Result<_>>()?))
    }

    pub fn read<'a, T: Send + 'static>(
        &'a self,
        look: impl FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let read: ReadJob = Box::new(move |connection| {
                // The caller may have gone.
                let _ = reply.send(connection.and_then(look));
            });
            self.requests.send(read).await.map_err(|_| Error::Closed)?;
            answer.await.map_err(|_| Error::Closed)?
        })
    }
}

fn serve(queue: &Mutex<mpsc::Receiver<ReadJob>>, file: &DatabaseFile) {
    let mut connection: Option<Connection> = None;
    loop {
        let next = queue.lock().expect("no thread panics while waiting for a job").blocking_recv();
        let Some(read) = next else { return };
        if connection.is_none() {
            match file.reader() {
                Ok(opened) => connection = Some(opened),
                Err(error) => {
                    read(Err(error));
                    continue;
                }
            }
        }
        if let Some(open) = &mut connection {
            read(Ok(open));
            // A transaction left open would keep old pages in the WAL for ever.
            if !open.is_autocommit() {
                connection = None;
            }
        }
    }
}
