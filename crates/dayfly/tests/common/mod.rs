//! The real binary on a free port, and a client that speaks plain bytes.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dayfly_storage::clock::{SystemWall, Wall as _};
use hmac::{Hmac, KeyInit as _, Mac as _};
use rustix::process::{Pid, Signal, kill_process};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

/// A key that is not the one everybody knows.
pub(crate) const OWN_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// Longer than anything a test waits for.
const PATIENCE: Duration = Duration::from_secs(30);

/// The binary with `arguments`, nothing of ours in its environment, and no cache.
pub(crate) fn dayfly(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dayfly"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("DAYFLY_") {
            command.env_remove(name);
        }
    }
    command.env_remove("HOME").env_remove("XDG_CACHE_HOME");
    command.args(arguments).stdin(Stdio::null());
    command
}

/// How a process that does not start ends: its code and what it says.
pub(crate) fn refusal(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    assert!(output.stdout.is_empty(), "it started: {output:?}");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// A running server; killed when dropped.
pub(crate) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// What it printed until `Started`.
    pub(crate) banner: String,
    pub(crate) port: u16,
    /// The data, if the server made its own folder.
    folder: Option<TempDir>,
}

impl Server {
    /// On a loopback port, with a folder of its own.
    pub(crate) fn start(arguments: &[&str]) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Server::start_in(folder.path(), arguments);
        server.folder = Some(folder);
        server
    }

    /// On a loopback port unless `arguments` say where, with its data in `folder`.
    pub(crate) fn start_in(folder: &Path, arguments: &[&str]) -> Server {
        let mut command = dayfly(arguments);
        if !arguments.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.arg("--data").arg(folder);
        Server::spawn(&mut command)
    }

    pub(crate) fn spawn(command: &mut Command) -> Server {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut banner = String::new();
        while banner.lines().last() != Some("Started") {
            let read = stdout.read_line(&mut banner).unwrap();
            assert!(read > 0, "the server ended before it started: {banner}");
        }
        let endpoint = banner.split("AccountEndpoint=https://").nth(1).unwrap();
        let host = endpoint.split('/').next().unwrap();
        let port = host.rsplit(':').next().unwrap().parse().unwrap();
        Server { child, stdout, banner, port, folder: None }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub(crate) fn connect(&self) -> Client {
        Client::over(TcpStream::connect(self.address()).unwrap())
    }

    /// One request on a connection of its own.
    pub(crate) fn get(&self, path: &str) -> Answer {
        let mut client = self.connect();
        client.get(path);
        client.answer()
    }

    /// One request with the key in it, as the admin API takes it.
    pub(crate) fn get_with(&self, key: &str, path: &str) -> Answer {
        let mut client = self.connect();
        client.send(format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n"
        ));
        client.answer()
    }

    /// Asks the server to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits until it has written a line with `part` to its standard error, which must be
    /// piped.
    pub(crate) fn hear(&mut self, part: &str) {
        let stderr = self.child.stderr.as_mut().unwrap();
        let mut said = String::new();
        let mut byte = [0];
        while !said.ends_with('\n') || !said.contains(part) {
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "it has not said '{part}': {said}");
            said.push(char::from(byte[0]));
        }
    }

    /// What it wrote to its standard error, which must be piped, until it ended.
    pub(crate) fn said(mut self) -> String {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }

    /// Waits until the server has ended by itself.
    pub(crate) fn ended(mut self) -> ExitStatus {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "Stopped\n", "nothing else is printed after Started");
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request signed with the key that every emulator uses, good for some
/// minutes.
pub(crate) fn request(server: &Server, method: &str, path: &str, body: &str) -> String {
    let date = dayfly_model::Timestamp(SystemWall.seconds()).to_http_date();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let (kind, link) = match parts.len() % 2 {
        0 => (parts[parts.len() - 2], parts.join("/")),
        _ => (parts[parts.len() - 1], parts[..parts.len() - 1].join("/")),
    };
    let key = server.banner.split("AccountKey=").nth(1).unwrap().split(';').next().unwrap();
    let payload = format!("{}\n{kind}\n{link}\n{}\n\n", method.to_lowercase(), date.to_lowercase());
    let mut signer = Hmac::<sha2::Sha256>::new_from_slice(&STANDARD.decode(key).unwrap()).unwrap();
    signer.update(payload.as_bytes());
    let signature = STANDARD.encode(signer.finalize().into_bytes());
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nx-ms-date: {date}\r\n\
         authorization: type=master&ver=1.0&sig={signature}\r\n\
         x-ms-documentdb-partitionkey: [\"x\"]\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends such a request on a connection of its own.
pub(crate) fn send(server: &Server, method: &str, path: &str, body: &str) -> Answer {
    let mut client = server.connect();
    client.send(request(server, method, path, body));
    client.answer()
}

/// A call of the admin API that goes well.
pub(crate) fn admin(server: &Server, call: &str, body: &str) {
    assert_eq!(admin_status(server, call, body), 200);
}

/// The status of a call of the admin API.
pub(crate) fn admin_status(server: &Server, call: &str, body: &str) -> u16 {
    let key = server.banner.split("AccountKey=").nth(1).unwrap().split(';').next().unwrap();
    let mut client = server.connect();
    client.send(format!(
        "POST /_admin/v1/{call} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    ));
    client.answer().status
}

/// A connection in clear text.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn over(stream: TcpStream) -> Client {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends what may be refused half way.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes.as_ref())
    }

    pub(crate) fn get(&mut self, path: &str) {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"));
    }

    pub(crate) fn end(&mut self) {
        self.stream.get_mut().shutdown(std::net::Shutdown::Write).unwrap();
    }

    /// The next answer.
    pub(crate) fn answer(&mut self) -> Answer {
        self.try_answer().expect("the connection was closed without an answer")
    }

    fn try_answer(&mut self) -> Option<Answer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head).unwrap() == 0 {
                assert_eq!(head, "");
                return None;
            }
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, head: head.to_ascii_lowercase(), body: String::new() };
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        answer.body = String::from_utf8(body).unwrap();
        Some(answer)
    }

    /// Everything until the end.
    pub(crate) fn rest(&mut self, text: &mut String) {
        self.stream.read_to_string(text).unwrap();
    }

    /// Whether the server closed the connection instead of answering.
    pub(crate) fn is_turned_away(&mut self) -> bool {
        !self.stream.fill_buf().is_ok_and(|bytes| !bytes.is_empty())
    }

    /// Whether the server closed the connection, whatever it sent before.
    pub(crate) fn is_closed_in_the_end(&mut self) -> bool {
        self.stream.read_to_end(&mut Vec::new()).is_ok()
    }

    /// How much the server sent until it closed the connection.
    pub(crate) fn bytes_until_closed(&mut self) -> usize {
        let mut rest = Vec::new();
        // It may have been reset.
        let _ = self.stream.read_to_end(&mut rest);
        rest.len()
    }

    /// Whether the server closed the connection, after nothing else.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => rest.is_empty(),
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    /// Checks that this is one of our errors, whole.
    #[track_caller]
    pub(crate) fn is_error(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{self:?}");
        let start = format!("{{\"code\":\"{code}\",\"message\":\"");
        assert!(self.body.starts_with(&start) && self.body.ends_with("\"}"), "{self:?}");
        assert!(self.header("x-ms-activity-id").is_some(), "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
    }
}

/// An address of this machine that is not a loopback one, if it has one. Nothing is sent.
pub(crate) fn network_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

/// A connection over https of a client that trusts nothing but `pem`.
pub(crate) fn secured(server: &Server, pem: &str) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    StreamOwned::new(connection, TcpStream::connect(server.address()).unwrap())
}
