//! A direct connection as a load has it: many requests on their way, each in a TLS record
//! of its own as clients send them, and few calls of the system.

use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ClientConfig, ClientConnection};

use super::super::load::{Done, Until};
use super::frames::{set_number, whole};
use crate::direct::{context, secured};
use crate::wire::PATIENCE;
use crate::{Result, failed};

/// What is read with one call.
const READ_BYTES: usize = 64 * 1024;

/// A direct connection.
pub(super) struct Channel {
    stream: BufReader<TcpStream>,
    tls: ClientConnection,
    /// What came and is not looked at.
    incoming: Vec<u8>,
    number: u32,
}

impl Channel {
    /// One whose context is exchanged.
    pub(super) fn open(
        address: SocketAddr,
        config: &Arc<ClientConfig>,
        read_bytes: usize,
    ) -> Result<Channel> {
        let stream = TcpStream::connect(address).map_err(failed("connecting"))?;
        let waits = stream.set_nodelay(true).and(stream.set_read_timeout(Some(PATIENCE)));
        waits.map_err(failed("setting up a connection"))?;
        let mut tls = secured(config)?;
        // As many requests as are on their way at once.
        tls.set_buffer_limit(None);
        let stream = BufReader::with_capacity(read_bytes, stream);
        let mut channel = Channel { stream, tls, incoming: Vec::new(), number: 0 };
        channel.send(&context())?;
        channel.flush()?;
        while channel.take()? == 0 {
            channel.receive()?;
        }
        Ok(channel)
    }

    /// One for a load.
    pub(super) fn for_load(address: SocketAddr, config: &Arc<ClientConfig>) -> Result<Channel> {
        Channel::open(address, config, READ_BYTES)
    }

    /// Asks once, and waits for the answer.
    pub(super) fn ask(&mut self, request: &[u8]) -> Result<()> {
        self.run(1, Until::Sent(1), |frame| frame.extend_from_slice(request)).map(|_| ())
    }

    /// Sends what `next` puts into its buffer, with so many on their way. Every answer has
    /// to be a success.
    pub(super) fn run(
        &mut self,
        in_flight: usize,
        until: Until,
        mut next: impl FnMut(&mut Vec<u8>),
    ) -> Result<Done> {
        let (mut left, time) = match until {
            Until::Passed(time) => (u64::MAX, time),
            Until::Sent(count) => (count, Duration::MAX),
        };
        let (started, mut done, mut flying) = (Instant::now(), 0, 0);
        let mut frame = Vec::new();
        loop {
            if started.elapsed() >= time {
                left = 0;
            }
            while flying < in_flight && left > 0 {
                frame.clear();
                next(&mut frame);
                self.number = self.number.wrapping_add(1);
                set_number(&mut frame, self.number);
                self.send(&frame)?;
                flying += 1;
                left -= 1;
            }
            if flying == 0 {
                return Ok(Done { requests: done, took: started.elapsed() });
            }
            self.flush()?;
            self.receive()?;
            let answers = self.take()?;
            flying = flying.saturating_sub(answers);
            done += answers as u64;
        }
    }

    fn send(&mut self, frame: &[u8]) -> Result<()> {
        self.tls.writer().write_all(frame).map_err(failed("encrypting"))
    }

    fn flush(&mut self) -> Result<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(self.stream.get_mut()).map_err(failed("sending"))?;
        }
        Ok(())
    }

    /// Waits for bytes, and takes all that are here.
    fn receive(&mut self) -> Result<()> {
        loop {
            self.flush()?;
            if self.tls.read_tls(&mut self.stream).map_err(failed("receiving"))? == 0 {
                return Err("the server closed a connection".to_owned());
            }
            let state = self.tls.process_new_packets().map_err(failed("decrypting"))?;
            let (start, more) = (self.incoming.len(), state.plaintext_bytes_to_read());
            self.incoming.resize(start + more, 0);
            let room = self.incoming.get_mut(start..).unwrap_or_default();
            self.tls.reader().read_exact(room).map_err(failed("decrypting"))?;
            if self.stream.buffer().is_empty() {
                return Ok(());
            }
        }
    }

    /// How many whole answers were here.
    fn take(&mut self) -> Result<usize> {
        let (mut count, mut start) = (0, 0);
        while let Some(length) = whole(self.incoming.get(start..).unwrap_or_default())? {
            start += length;
            count += 1;
        }
        self.incoming.drain(..start);
        Ok(count)
    }
}
