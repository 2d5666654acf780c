//! One connection that sends requests and reads responses, with as little overhead as possible.

use anyhow::{Context, bail};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(super) struct BenchConnection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl BenchConnection {
    pub(super) async fn open(address: SocketAddr) -> anyhow::Result<BenchConnection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(BenchConnection { stream, read: Vec::with_capacity(16 << 10) })
    }

    /// Sends a request and reads the response; returns its status.
    pub(super) async fn request(&mut self, request: &[u8]) -> anyhow::Result<u16> {
        self.stream.write_all(request).await?;
        self.read.clear();
        let head = loop {
            match self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => self.more().await?,
            }
        };
        let text = std::str::from_utf8(&self.read[..head]).context("a head that is not text")?;
        let status = text.get(9..12).and_then(|status| status.parse().ok()).context("no status")?;
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let length = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length: Option<usize> = length.filter_map(|(_, length)| length.trim().parse().ok()).next();
        let length = length.with_context(|| format!("a response without a length: {text}"))?;
        while self.read.len() < head + length {
            self.more().await?;
        }
        Ok(status)
    }

    /// The body of the last response.
    pub(super) fn body(&self) -> &[u8] {
        let head = self.read.windows(4).position(|four| four == b"\r\n\r\n").map_or(0, |end| end + 4);
        &self.read[head..]
    }

    async fn more(&mut self) -> anyhow::Result<()> {
        match self.stream.read_buf(&mut self.read).await? {
            0 => bail!("the server closed the connection"),
            _ => Ok(()),
        }
    }
}
