//! A hyper server that does nothing but answer: what a request costs before
//! any of our code runs.
//!
//! It sends the head and the body that it finds in a file, with as many
//! threads as dayfly has.

use std::convert::Infallible;
use std::path::PathBuf;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::{Result, failed};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The response, as it goes over the wire.
    #[arg(long)]
    response: PathBuf,
}

/// What every request gets.
struct Answer {
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

/// Serves until it is killed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let response = std::fs::read(&options.response).map_err(failed("reading the response"))?;
    // One server for the life of the process.
    let answer: &'static Answer = Box::leak(Box::new(Answer::parse(&response)?));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.min(16))
        .enable_all()
        .build()
        .map_err(failed("starting threads"))?;
    runtime.block_on(serve(answer)).map_err(failed("serving"))
}

impl Answer {
    fn parse(response: &[u8]) -> Result<Answer> {
        let end = response.windows(4).position(|end| end == b"\r\n\r\n").ok_or("no head")?;
        let (head, body) = response.split_at(end + 4);
        let head = String::from_utf8_lossy(head);
        let mut headers = Vec::new();
        for (name, value) in head.lines().filter_map(|line| line.split_once(": ")) {
            // hyper counts the body itself, as it does for dayfly.
            if !name.eq_ignore_ascii_case("content-length") {
                let name = HeaderName::from_bytes(name.as_bytes()).map_err(failed("a header"))?;
                headers.push((name, HeaderValue::from_str(value).map_err(failed("a header"))?));
            }
        }
        Ok(Answer { headers, body: Bytes::copy_from_slice(body) })
    }

    fn response(&self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body.clone()));
        response.headers_mut().reserve(self.headers.len());
        for (name, value) in &self.headers {
            response.headers_mut().insert(name, value.clone());
        }
        response
    }
}

async fn serve(answer: &'static Answer) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    println!("AccountEndpoint=http://localhost:{port}/;\nStarted");
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service_fn(move |_: Request<Incoming>| async move {
            Ok::<_, Infallible>(answer.response())
        });
        tokio::spawn(async move {
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // A connection that breaks is the client's affair.
            let _ = connection.await;
        });
    }
}
