//! Requests signed with the key of the server, as an SDK would.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dayfly_model::Timestamp;
use dayfly_storage::clock::{SystemWall, Wall as _};
use hmac::{Hmac, KeyInit as _, Mac as _};

use crate::common::{Answer, Server};

/// A request about partition `x`, good for some minutes.
pub(crate) fn request(server: &Server, method: &str, path: &str, body: &str) -> String {
    let date = Timestamp(SystemWall.seconds()).to_http_date();
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

/// Sends a request on a connection of its own.
pub(crate) fn send(server: &Server, method: &str, path: &str, body: &str) -> Answer {
    let mut client = server.connect();
    client.send(request(server, method, path, body));
    client.answer()
}
