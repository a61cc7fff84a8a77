//! The door: who comes in, how many, and how it is closed.
//!
//! The server listens on one port for everything, or on two that are the same but
//! for their number, each on one address or on both of loopback; what a client speaks is
//! found out per connection. A third may be for health checks alone: all doors lead into one
//! house, and each connection knows by which it came. When the limit is reached the next connection is accepted
//! and closed at once: its client learns of it now, where one that
//! waits in the queue of the system would wait for ever. Connections that do
//! nothing useful leave within seconds, so the place is not lost for long.

use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::address::Listen;
use crate::config::{Checked, Further};
use crate::connection::serve;
use crate::house::{Door, House};
use crate::signals::Signals;
use crate::visit::Host;

/// The pause after the system refused us a connection, most likely because we
/// have as many files open as we may. Without it the loop would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How often a free port is looked for that is free on both loopback addresses.
const FREE_PORT_TRIES: u32 = 32;

/// Where connections come in.
pub(crate) struct Doors {
    /// Never empty.
    main: Vec<TcpListener>,
    compute: Vec<TcpListener>,
    health: Vec<TcpListener>,
    /// The one that is looked at first, in turn.
    turn: usize,
}

/// Where a server listens, for those who are told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) main: SocketAddr,
    /// Of the compute gateway.
    pub(crate) compute: Option<SocketAddr>,
    pub(crate) health: Option<SocketAddr>,
}

impl Doors {
    /// Opens all of them, or says which cannot be opened. Clients that come before the
    /// server has started wait for it.
    pub(crate) async fn open(settings: &Checked) -> Result<Doors, String> {
        let main = open(settings.listen, "--listen").await?;
        let compute = open_further(settings.compute_listen, "--compute-listen").await?;
        let health = open_further(settings.health_listen, "--health-listen").await?;
        Ok(Doors { main, compute, health, turn: 0 })
    }

    pub(crate) fn addresses(&self) -> io::Result<Addresses> {
        let first = |doors: &[TcpListener]| doors.first().map(TcpListener::local_addr).transpose();
        Ok(Addresses {
            main: first(&self.main)?.ok_or(io::ErrorKind::AddrNotAvailable)?,
            compute: first(&self.compute)?,
            health: first(&self.health)?,
        })
    }

    /// The next connection, and the door it came by. Who comes by one does not wait for the
    /// others, which are looked at in turn.
    async fn accept(&mut self) -> io::Result<(TcpStream, Door)> {
        poll_fn(|cx| {
            let count = self.main.len() + self.compute.len() + self.health.len();
            self.turn = self.turn.wrapping_add(1);
            let main = self.main.iter().chain(&self.compute).map(|door| (door, Door::Main));
            let doors = main.chain(self.health.iter().map(|door| (door, Door::Health))).cycle();
            for (listener, door) in doors.skip(self.turn % count.max(1)).take(count) {
                if let Poll::Ready(accepted) = listener.poll_accept(cx) {
                    return Poll::Ready(accepted.map(|(stream, _)| (stream, door)));
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Opens the doors of a further place. Where nobody asked for it, it may be taken.
async fn open_further(further: Option<Further>, flag: &str) -> Result<Vec<TcpListener>, String> {
    let Some(further) = further else { return Ok(Vec::new()) };
    match open(further.place, flag).await {
        Err(sentence) if !further.is_asked_for => {
            tracing::warn!("{sentence} The server goes on without it.");
            Ok(Vec::new())
        }
        opened => opened,
    }
}

/// Opens the doors of one place, which was given with `flag`.
async fn open(place: Listen, flag: &str) -> Result<Vec<TcpListener>, String> {
    match place {
        Listen::One(address) => bind(address).await.map(|door| vec![door]),
        Listen::Every(port) => {
            let every = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
            match bind(every).await {
                Err(refused) if is_absent(&refused.error) => {
                    bind((Ipv4Addr::UNSPECIFIED, port).into()).await
                }
                bound => bound,
            }
            .map(|door| vec![door])
        }
        Listen::Loopback(port) => both(port).await,
    }
    .map_err(|refused| refused.sentence(flag))
}

/// Both loopback addresses, with the same port.
async fn both(port: u16) -> Result<Vec<TcpListener>, Refused> {
    let mut tries = if port == 0 { FREE_PORT_TRIES } else { 1 };
    loop {
        tries -= 1;
        let first = bind((Ipv4Addr::LOCALHOST, port).into()).await?;
        let second = match first.local_addr() {
            Ok(address) => bind((Ipv6Addr::LOCALHOST, address.port()).into()).await,
            Err(error) => {
                return Err(Refused { address: (Ipv4Addr::LOCALHOST, port).into(), error });
            }
        };
        match second {
            Ok(second) => return Ok(vec![first, second]),
            Err(refused) if is_absent(&refused.error) => return Ok(vec![first]),
            Err(_) if tries > 0 => {}
            Err(refused) => return Err(refused),
        }
    }
}

/// Whether the machine has no such address, or no addresses of this version at all.
fn is_absent(error: &io::Error) -> bool {
    let no_version = Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error());
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == no_version
}

/// An address that cannot be listened on.
struct Refused {
    address: SocketAddr,
    error: io::Error,
}

impl Refused {
    fn sentence(self, flag: &str) -> String {
        let Refused { address, error } = self;
        if error.kind() == io::ErrorKind::AddrInUse {
            return format!(
                "{address} cannot be listened on: another program does. Stop it, or give another \
                 port with {flag}."
            );
        }
        format!("{address} cannot be listened on: {error}.")
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Refused> {
    TcpListener::bind(address).await.map_err(|error| Refused { address, error })
}

/// Takes connections until a signal comes, then lets the requests that run
/// come to their end, for a limited time or until the next signal. Queries that have
/// not ended by then are told to, and their clients learn of it.
pub(crate) async fn listen(mut doors: Doors, host: Arc<Host>, signals: &mut Signals) {
    let house = Arc::new(House::new(host.limits.max_connections, Arc::clone(host.api.edge())));
    loop {
        tokio::select! {
            biased;
            () = signals.next() => break,
            accepted = doors.accept() => match accepted {
                Ok((stream, door)) => receive(stream, door, &host, &house),
                Err(error) => pause(&error).await,
            },
        }
    }
    drop(doors);
    tokio::select! {
        is_empty = house.empty(host.limits.stop_timeout()) => {
            host.api.stop_long_work();
            if !is_empty && !house.empty(host.limits.linger_timeout()).await {
                tracing::warn!(open = house.count(), "stopped with connections still open");
            }
        }
        () = signals.next() => {}
    }
}

async fn pause(error: &io::Error) {
    // These are the client's affair: it went away before we came to it.
    let gone = [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset];
    if !gone.contains(&error.kind()) {
        tracing::warn!(%error, "no connection can be taken just now");
        sleep(ACCEPT_PAUSE).await;
    }
}

fn receive(stream: TcpStream, door: Door, host: &Arc<Host>, house: &Arc<House>) {
    let Some(guest) = house.enter() else { return };
    // Answers are written whole; waiting for more to send only delays them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY was refused");
    }
    tokio::spawn(serve(stream, door, Arc::clone(host), guest));
}
