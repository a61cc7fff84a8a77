//! Starts a server, reads its banner, moves its clock.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A running server. It dies with this process.
pub(crate) struct Server {
    port: u16,
    pub(crate) key: String,
    /// Holds the pipe that keeps the server alive.
    process: Child,
}

impl Server {
    /// Starts a server with the storage that `serve` calls so.
    #[expect(clippy::zombie_processes, reason = "it ends when this process does")]
    pub(crate) fn start(storage: &[&str]) -> Self {
        let mut process = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../serve"))
            .args(storage)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();

        let mut banner = String::new();
        for line in BufReader::new(process.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            if line.trim() == "Started" {
                let (port, key) = address_in(&banner);
                return Self { port, key, process };
            }
            banner += &line;
            banner += "\n";
        }
        panic!("The server ended before it had started:\n{banner}");
    }

    /// Kills the server, and waits until it is gone.
    pub(crate) fn stop(mut self) {
        drop(self.process.stdin.take());
        self.process.wait().unwrap();
    }

    pub(crate) fn endpoint(&self, scheme: &str) -> String {
        format!("{scheme}://localhost:{}/", self.port)
    }

    pub(crate) async fn freeze_clock(&self) {
        self.set_clock(json!({"frozen": true})).await;
    }

    pub(crate) async fn advance(&self, seconds: u32) {
        self.set_clock(json!({"advanceSeconds": seconds})).await;
    }

    pub(crate) async fn now(&self) -> u64 {
        let clock = self.call(reqwest::Client::new().get(self.clock_url())).await;
        clock["now"].as_u64().unwrap()
    }

    /// Lets the clock run while something is done.
    pub(crate) async fn while_time_passes(&self, what: impl Future<Output = ()>) {
        self.set_clock(json!({"frozen": false})).await;
        what.await;
        self.freeze_clock().await;
    }

    /// What the admin API says.
    pub(crate) async fn read_admin(&self, call: &str) -> Value {
        self.call(reqwest::Client::new().get(self.admin_url(call))).await
    }

    /// Changes something by the admin API.
    pub(crate) async fn put_admin(&self, call: &str, change: Value) {
        let request = reqwest::Client::new().put(self.admin_url(call)).body(change.to_string());
        self.call(request).await;
    }

    async fn set_clock(&self, change: Value) {
        let request = reqwest::Client::new().post(self.clock_url()).body(change.to_string());
        self.call(request).await;
    }

    async fn call(&self, request: reqwest::RequestBuilder) -> Value {
        let response = request.bearer_auth(&self.key).send().await.unwrap();
        let response = response.error_for_status().unwrap();
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
    }

    fn clock_url(&self) -> String {
        self.admin_url("clock")
    }

    fn admin_url(&self, call: &str) -> String {
        format!("http://127.0.0.1:{}/_admin/v1/{call}", self.port)
    }
}

/// The port and the key in the connection string of the banner.
fn address_in(banner: &str) -> (u16, String) {
    let between = |start: &str, end: &str| {
        let (_, rest) = banner.split_once(start)?;
        rest.split_once(end).map(|(found, _)| found.to_owned())
    };
    let port = between("AccountEndpoint=https://localhost:", "/;").expect(banner);
    let key = between("AccountKey=", ";").expect(banner);
    (port.parse().unwrap(), key)
}
