//! The ways to the server: over HTTP, and for items in frames of direct mode, too.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;

use crate::Result;
use crate::direct::Direct;
use crate::server::Server;
use crate::wire::{Answer, Client};

/// A connection of each kind.
pub(crate) struct Ways {
    http: Client,
    direct: Direct,
}

impl Ways {
    pub(crate) fn open(server: &Server, config: &Arc<ClientConfig>) -> Result<Ways> {
        Ok(Ways { http: server.connect()?, direct: Direct::open(server.address, config)? })
    }

    /// Asks over HTTP.
    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> io::Result<Answer> {
        self.http.ask(method, path, headers, body)
    }

    /// Asks in a frame. Its answer tells no time, so that is asked for at once: what was
    /// answered was so then, or at a moment since the answer before.
    pub(crate) fn ask_framed(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> io::Result<Answer> {
        let answer = self.direct.ask(method, path, headers, body)?;
        let time = self.http.ask("GET", "/", &[], "")?;
        Ok(Answer { head: time.head, ..answer })
    }

    /// One of both.
    pub(crate) fn ask_by(
        &mut self,
        framed: bool,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> io::Result<Answer> {
        if framed {
            self.ask_framed(method, path, headers, body)
        } else {
            self.ask(method, path, headers, body)
        }
    }
}
