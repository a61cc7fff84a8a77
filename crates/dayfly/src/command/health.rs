//! `dayfly healthcheck`: whether a server is well, for whoever watches over it.

use std::path::PathBuf;

use clap::Args;

use super::client::Client;
use super::print;
use crate::keys::WELL_KNOWN_KEY;

/// Asks a server whether it takes writes. It needs no key.
#[derive(Clone, Debug, Args)]
pub(crate) struct Health {
    /// Where the server listens.
    #[arg(long, env = "DAYFLY_ENDPOINT", value_name = "URL")]
    #[arg(default_value = "http://127.0.0.1:8081")]
    endpoint: String,

    /// For https: a file with the certificate to trust.
    #[arg(long, env = "DAYFLY_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl Health {
    /// Prints one line; or says in a sentence what is wrong.
    pub(super) fn run(&self) -> Result<(), String> {
        // A client has a key; this one never sends it.
        let key = Some(WELL_KNOWN_KEY.to_owned());
        Client::new(&self.endpoint, key, self.ca.as_deref())?.ready()?;
        print("ready\n").map(drop)
    }
}
