//! `dayfly portal`: an address that opens the portal for somebody who has the key.

use clap::Args;
use serde_json::{Value, json};

use super::{Server, not_json, print};

/// Prints an address that opens the portal of a running server, without the key. It is good
/// once, and for a minute.
#[derive(Clone, Debug, Args)]
pub(crate) struct Portal {
    #[command(flatten)]
    server: Server,
}

impl Portal {
    /// Asks for a code, and prints the address with it.
    pub(super) fn run(&self) -> Result<(), String> {
        let client = self.server.client()?;
        let answer = client.ask("/_admin/v1/session/code", Some(&json!({})))?;
        let answer: Value = serde_json::from_str(&answer).map_err(|_| not_json())?;
        let code = answer.get("code").and_then(Value::as_str).ok_or_else(not_json)?;
        let address = address(&self.server.endpoint, code);
        if self.server.json {
            let seconds = answer.get("expiresInSeconds");
            let answer = json!({"address": address, "expiresInSeconds": seconds});
            return print(&format!("{answer}\n")).map(drop);
        }
        print(&format!("{address}\n")).map(drop)
    }
}

/// The code stands behind a `#`: a browser sends that to nobody.
fn address(endpoint: &str, code: &str) -> String {
    format!("{}/_explorer/#code={code}", endpoint.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_behind_what_a_browser_sends() {
        for endpoint in ["http://localhost:8081", "http://localhost:8081/"] {
            assert_eq!(address(endpoint, "a-_"), "http://localhost:8081/_explorer/#code=a-_");
        }
    }
}
