//! A few threads that only read, each with a connection of its own. None can write, none waits for the writer.

use super::connection::File;
use rusqlite::Connection;
use rutter_core::port::{Answer, Error};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use tokio::sync::{mpsc, oneshot};

/// More questions than this wait outside.
const QUEUE_MAX: usize = 1_024;

type Read = Box<dyn FnOnce(Result<&mut Connection, Error>) + Send>;

#[derive(Debug)]
pub(super) struct Readers {
    requests: mpsc::Sender<Read>,
}

impl Readers {
    /// Starts the threads; they end when the readers are dropped.
    pub fn start(file: &File, count: usize) -> std::io::Result<(Readers, Vec<JoinHandle<()>>)> {
        let (requests, queue) = mpsc::channel::<Read>(QUEUE_MAX);
        let queue = Arc::new(Mutex::new(queue));
        let threads = (0..count.max(1)).map(|_| {
            let (queue, file) = (Arc::clone(&queue), file.clone());
            thread::Builder::new().name("rutter-read".to_owned()).spawn(move || serve(&queue, &file))
        });
        Ok((Readers { requests }, threads.collect::<std::io::Result<_>>()?))
    }

    pub fn read<'a, T: Send + 'static>(
        &'a self,
        look: impl FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
    ) -> Answer<'a, T> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let read: Read = Box::new(move |connection| {
                // Whoever asked may have gone.
                let _ = reply.send(connection.and_then(look));
            });
            self.requests.send(read).await.map_err(|_| Error::Closed)?;
            answer.await.map_err(|_| Error::Closed)?
        })
    }
}

fn serve(queue: &Mutex<mpsc::Receiver<Read>>, file: &File) {
    let mut connection: Option<Connection> = None;
    loop {
        let next = queue.lock().expect("nobody panics while waiting for a question").blocking_recv();
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
            // A statement left half-way would hold old pages of the log for ever.
            if !open.is_autocommit() {
                connection = None;
            }
        }
    }
}
