//! The load: some connections, each of which asks, waits for the answer, and
//! asks again. One thread drives them all, since the server needs the others.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memchr::memmem;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::{Result, failed};

/// No load takes longer, whatever happens.
const PATIENCE: Duration = Duration::from_mins(5);

/// When a load ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    Passed(Duration),
    Sent(u64),
}

/// What a load came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) requests: u64,
    pub(super) took: Duration,
}

impl Done {
    pub(super) fn per_second(&self) -> f64 {
        self.requests as f64 / self.took.as_secs_f64()
    }
}

/// Sends what `next` puts into its buffer, over `connections` at once. Every
/// answer has to be a success.
pub(super) fn run(
    address: SocketAddr,
    connections: usize,
    until: Until,
    next: impl FnMut(&mut Vec<u8>) + 'static,
) -> Result<Done> {
    Kept::in_clear(address, connections)?.run(until, next)
}

/// Connections that are kept from one load to the next, so that what it takes to open
/// them is in none.
pub(super) struct Kept<S> {
    runtime: Runtime,
    streams: Vec<S>,
}

impl Kept<TcpStream> {
    pub(super) fn in_clear(address: SocketAddr, connections: usize) -> Result<Self> {
        let runtime = runtime()?;
        let streams = patiently(&runtime, connect(address, connections))?;
        Ok(Kept { runtime, streams })
    }
}

impl Kept<TlsStream<TcpStream>> {
    pub(super) fn encrypted(
        address: SocketAddr,
        connections: usize,
        config: &Arc<ClientConfig>,
    ) -> Result<Self> {
        let runtime = runtime()?;
        let connector = TlsConnector::from(Arc::clone(config));
        let streams = patiently(&runtime, async {
            let mut streams = Vec::new();
            for stream in connect(address, connections).await? {
                let name = ServerName::try_from("localhost").map_err(failed("a name"))?;
                let stream = connector.connect(name, stream).await;
                streams.push(stream.map_err(failed("a TLS handshake"))?);
            }
            Ok(streams)
        })?;
        Ok(Kept { runtime, streams })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + 'static> Kept<S> {
    /// Sends this over each of them once, one after the other.
    pub(super) fn ask_each(&mut self, request: &[u8]) -> Result<()> {
        let Kept { runtime, streams } = self;
        patiently(runtime, async {
            let mut answer = Vec::new();
            for stream in streams {
                exchange(stream, request, &mut answer).await?;
            }
            Ok(())
        })
    }

    /// Sends what `next` puts into its buffer, over all of them at once.
    pub(super) fn run(
        &mut self,
        until: Until,
        next: impl FnMut(&mut Vec<u8>) + 'static,
    ) -> Result<Done> {
        let streams = std::mem::take(&mut self.streams);
        let (done, streams) = patiently(&self.runtime, drive(streams, until, next))?;
        self.streams = streams;
        Ok(done)
    }
}

fn runtime() -> Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(failed("starting the load"))
}

/// Runs a load on this thread, until it ends or patience does.
fn patiently<T>(runtime: &Runtime, load: impl Future<Output = Result<T>>) -> Result<T> {
    let tasks = LocalSet::new();
    let work = tasks.run_until(load);
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, work).await })
        .map_err(failed("load"))?
}

async fn connect(address: SocketAddr, connections: usize) -> Result<Vec<TcpStream>> {
    let mut streams = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(address).await.map_err(failed("connecting"))?;
        stream.set_nodelay(true).map_err(failed("connecting"))?;
        streams.push(stream);
    }
    Ok(streams)
}

/// Sends a request and waits for its whole answer.
async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    request: &[u8],
    answer: &mut Vec<u8>,
) -> Result<()> {
    stream.write_all(request).await.map_err(failed("sending"))?;
    // Over TLS it may still wait here.
    stream.flush().await.map_err(failed("sending"))?;
    answer.clear();
    while !is_whole(answer)? {
        if stream.read_buf(answer).await.map_err(failed("receiving"))? == 0 {
            return Err("the server closed a connection".to_owned());
        }
    }
    Ok(())
}

/// What the connections share.
struct Shared<N> {
    next: RefCell<N>,
    left: Cell<u64>,
    done: Cell<u64>,
}

async fn drive<S, N>(streams: Vec<S>, until: Until, next: N) -> Result<(Done, Vec<S>)>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
    N: FnMut(&mut Vec<u8>) + 'static,
{
    let left = match until {
        Until::Passed(_) => u64::MAX,
        Until::Sent(count) => count,
    };
    let shared =
        Rc::new(Shared { next: RefCell::new(next), left: Cell::new(left), done: Cell::new(0) });
    let started = Instant::now();
    let tasks: Vec<_> = streams
        .into_iter()
        .map(|stream| tokio::task::spawn_local(connection(stream, Rc::clone(&shared))))
        .collect();
    if let Until::Passed(time) = until {
        tokio::time::sleep(time).await;
        shared.left.set(0);
    }
    let mut streams = Vec::new();
    for task in tasks {
        streams.push(task.await.map_err(failed("a connection"))??);
    }
    Ok((Done { requests: shared.done.get(), took: started.elapsed() }, streams))
}

/// Asks again and again. Gives the connection back.
async fn connection<S: AsyncRead + AsyncWrite + Unpin, N: FnMut(&mut Vec<u8>)>(
    mut stream: S,
    shared: Rc<Shared<N>>,
) -> Result<S> {
    let mut request = Vec::new();
    let mut answer = Vec::with_capacity(16 * 1024);
    while shared.left.get() > 0 {
        shared.left.set(shared.left.get() - 1);
        request.clear();
        (shared.next.borrow_mut())(&mut request);
        exchange(&mut stream, &request, &mut answer).await?;
        shared.done.set(shared.done.get() + 1);
    }
    Ok(stream)
}

/// How late the answers came, of requests that were due at fixed times.
pub(super) struct Due {
    /// From the time a request was due to its answer, shortest first.
    late: Vec<Duration>,
}

impl Due {
    /// Half of them were not later.
    pub(super) fn p50_ms(&self) -> f64 {
        self.percentile_ms(50)
    }

    /// 99 of 100 were not later.
    pub(super) fn p99_ms(&self) -> f64 {
        self.percentile_ms(99)
    }

    fn percentile_ms(&self, percent: usize) -> f64 {
        let place = self.late.len() * percent / 100;
        self.late.get(place).map_or(f64::NAN, |late| late.as_secs_f64() * 1e3)
    }
}

/// How many connections share the requests; more than are ever needed at once,
/// so that none waits for another.
const OPEN_CONNECTIONS: usize = 256;

/// Sends `rate` requests a second for a while, whether or not the answers keep
/// up. A request that has to wait for a connection is late too.
pub(super) fn open_loop(
    address: SocketAddr,
    rate: f64,
    time: Duration,
    next: impl FnMut(&mut Vec<u8>) + 'static,
) -> Result<Due> {
    patiently(&runtime()?, drive_open(address, rate, time, next))
}

/// What the connections of an open loop share: the next request's number says
/// when it is due.
struct Line<N> {
    next: RefCell<N>,
    number: Cell<u64>,
    late: RefCell<Vec<Duration>>,
}

async fn drive_open<N: FnMut(&mut Vec<u8>) + 'static>(
    address: SocketAddr,
    rate: f64,
    time: Duration,
    next: N,
) -> Result<Due> {
    let line = Rc::new(Line {
        next: RefCell::new(next),
        number: Cell::new(0),
        late: RefCell::new(Vec::new()),
    });
    let streams = connect(address, OPEN_CONNECTIONS).await?;
    let started = Instant::now();
    let tasks: Vec<_> = streams
        .into_iter()
        .map(|stream| {
            tokio::task::spawn_local(open_connection(stream, Rc::clone(&line), started, rate, time))
        })
        .collect();
    for task in tasks {
        task.await.map_err(failed("a connection"))??;
    }
    let mut late = line.late.take();
    late.sort_unstable();
    Ok(Due { late })
}

async fn open_connection<N: FnMut(&mut Vec<u8>)>(
    mut stream: TcpStream,
    line: Rc<Line<N>>,
    started: Instant,
    rate: f64,
    time: Duration,
) -> Result<()> {
    let mut request = Vec::new();
    let mut answer = Vec::with_capacity(16 * 1024);
    loop {
        let number = line.number.get();
        let due = Duration::from_secs_f64(number as f64 / rate);
        if due > time {
            return Ok(());
        }
        line.number.set(number + 1);
        tokio::time::sleep_until((started + due).into()).await;
        request.clear();
        (line.next.borrow_mut())(&mut request);
        exchange(&mut stream, &request, &mut answer).await?;
        line.late.borrow_mut().push(started.elapsed().saturating_sub(due));
    }
}

/// Whether the answer has come to its end; an error if it is one, or a batch of which
/// something failed. This is in the way of every answer, on the cores of the server.
fn is_whole(answer: &[u8]) -> Result<bool> {
    let Some(head) = memmem::find(answer, b"\r\n\r\n") else { return Ok(false) };
    let (head, body) = answer.split_at(head + 4);
    if head.get(9) != Some(&b'2') || head.get(9..12) == Some(b"207") {
        return Err(format!("the server answered {}", String::from_utf8_lossy(answer)));
    }
    // Servers write it in lower case or with capitals.
    let name = b"ontent-length: ";
    let start = memmem::find(head, name).or_else(|| memmem::find(head, b"ontent-Length: "));
    let digits = start.and_then(|start| head.get(start + name.len()..)).unwrap_or_default();
    let digits = digits.iter().take_while(|digit| digit.is_ascii_digit());
    let length = digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
    Ok(body.len() >= length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_body_is_here() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello, world";
        assert_eq!(is_whole(answer), Ok(true));
        assert_eq!(is_whole(answer.strip_suffix(b"d").unwrap()), Ok(false));
        assert_eq!(is_whole(b"HTTP/1.1 200 OK\r\nconten"), Ok(false));
        assert!(is_whole(b"HTTP/1.1 404 Not Found\r\n\r\n").is_err());
        assert!(is_whole(b"HTTP/1.1 207 Multi-Status\r\n\r\n").is_err());
    }
}
