//! What a person sees when the server starts, and when it has stopped.
//!
//! The last line at the start is `Started`, and it comes only when a write has worked, or was
//! refused because the disk is nearly full: whoever waits for it can connect. A key that the user gave is not printed.
//!
//! In emulator mode tools read along. Some wait for `Now listening on: `, others for
//! `Started` at the end of a line, and one of them for a line that ends as on Windows.

use std::io::{self, Write as _};
use std::net::SocketAddr;

use crate::config::{Checked, ClearText, Durability, Place};
use crate::listen::Addresses;
use crate::tls::host_name;

/// What .NET reads in a connection string, and others read past.
const UNCHECKED: &str = "DisableServerCertificateValidation=True;";

/// Prints how to connect to the server that listens on `addresses`.
pub(crate) fn print(settings: &Checked, addresses: Addresses) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text(settings, addresses).as_bytes())?;
    out.flush()
}

/// Says that everything is closed: whoever waits for it can take the folder.
pub(crate) fn print_end() -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(b"Stopped\n")?;
    out.flush()
}

fn text(settings: &Checked, addresses: Addresses) -> String {
    let key = if settings.own_key { "<your key>" } else { &settings.keys.primary };
    let host = |address| if settings.emulator { published(address) } else { host(address) };
    let main = host(addresses.main);
    let mut text = format!("dayfly {}\n\n", env!("CARGO_PKG_VERSION"));
    let mut line = |scheme: &str, more: &str| {
        text.push_str(&format!("AccountEndpoint={scheme}://{main}/;AccountKey={key};{more}\n"));
    };
    // Nobody knows our certificate. On this machine that does no harm; on a network,
    // clients had better come to trust it. Direct mode is encrypted with either.
    let unchecked = if settings.loopback { UNCHECKED } else { "" };
    line("https", unchecked);
    if settings.clear_text == ClearText::Served {
        line("http", unchecked);
    }
    // Where the admin API is hidden from those who come, the portal is too.
    if settings.portal && (settings.loopback || settings.admin_public) {
        let scheme = if settings.clear_text == ClearText::Served { "http" } else { "https" };
        text.push_str(&format!("Portal: {scheme}://{main}/_explorer/\n"));
    }
    if let Some(compute) = addresses.compute {
        text.push_str(&format!("Compute gateway: https://{}/\n", host(compute)));
    }
    if let Some(health) = addresses.health {
        text.push_str(&format!("Health checks: http://{}/ready\n", host(health)));
    }
    text.push_str(&match &settings.place {
        Place::Memory => "\nData: in memory, gone when the server stops\n".to_owned(),
        Place::Folder(folder) => format!("\nData: {}\n", folder.display()),
    });
    if settings.durability == Durability::Relaxed {
        text.push_str("Durability: relaxed, a power cut can take back the last writes\n");
    }
    if settings.test_clock {
        text.push_str("Clock: a test clock, which the admin API can move\n");
    }
    if settings.emulator {
        text.push_str(&emulator(settings, &main));
    } else {
        text.push_str("Started\n");
    }
    text
}

/// What emulator mode means, and the lines that tools wait for.
fn emulator(settings: &Checked, main: &str) -> String {
    let meaning = if settings.own_key {
        "clear text and the admin API are there for whoever reaches this server and has its key."
    } else {
        "whoever reaches this server can read and change everything in it: everybody knows its key."
    };
    let protocol = settings.protocol;
    format!(
        "\nEMULATOR MODE: {meaning} Publish its ports to your own machine only.\n\n\
         Now listening on: {protocol}://{main}\nStarted\r\n"
    )
}

/// How a client calls us by a port that is published to its machine.
fn published(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        return format!("localhost:{}", address.port());
    }
    host(address)
}

/// How a client calls us. A server on all addresses is called by its name.
fn host(address: SocketAddr) -> String {
    let ip = address.ip();
    let port = address.port();
    if ip == std::net::Ipv4Addr::LOCALHOST || ip == std::net::Ipv6Addr::LOCALHOST {
        return format!("localhost:{port}");
    }
    match host_name().filter(|_| ip.is_unspecified()) {
        Some(name) => format!("{name}:{port}"),
        None => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::config::{Config, Further};
    use crate::keys::WELL_KNOWN_KEY;

    const OWN: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

    fn banner(arguments: &str, address: &str) -> String {
        let arguments = std::iter::once("dayfly").chain(arguments.split_whitespace());
        let settings = Config::try_parse_from(arguments).unwrap().check().unwrap();
        let main: SocketAddr = address.parse().unwrap();
        let at = |further: Further| (main.ip(), further.place.port()).into();
        let (compute, health) = (settings.compute_listen.map(at), settings.health_listen.map(at));
        text(&settings, Addresses { main, compute, health })
    }

    #[test]
    fn a_local_server_shows_both_connection_strings() {
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            banner("", "127.0.0.1:8081"),
            format!(
                "dayfly {version}\n\n\
                 AccountEndpoint=https://localhost:8081/;AccountKey={WELL_KNOWN_KEY};\
                 DisableServerCertificateValidation=True;\n\
                 AccountEndpoint=http://localhost:8081/;AccountKey={WELL_KNOWN_KEY};\
                 DisableServerCertificateValidation=True;\n\
                 Portal: http://localhost:8081/_explorer/\n\n\
                 Data: ./dayfly-data\nStarted\n"
            )
        );
    }

    #[test]
    fn the_portal_is_shown_to_those_who_can_open_it() {
        let network = format!("--listen 10.0.0.5:1 --key {OWN}");
        for (flags, address, shown) in [
            ("--memory --no-portal", "127.0.0.1:1", None),
            ("--memory --emulator", "[::]:8081", Some("http://localhost:8081")),
            (&network, "10.0.0.5:1", None),
            (&format!("{network} --admin-public"), "10.0.0.5:1", Some("https://10.0.0.5:1")),
        ] {
            let text = banner(flags, address);
            let line = text.lines().find_map(|line| line.strip_prefix("Portal: "));
            assert_eq!(line, shown.map(|at| format!("{at}/_explorer/")).as_deref(), "{flags}");
        }
    }

    #[test]
    fn a_key_of_the_user_is_not_shown() {
        let text = banner(&format!("--listen 10.0.0.5:1 --key {OWN}"), "10.0.0.5:1");
        assert!(!text.contains(OWN) && !text.contains("http://"), "{text}");
        assert!(text.contains("AccountEndpoint=https://10.0.0.5:1/;AccountKey=<your key>;\n"));
    }

    #[test]
    fn an_emulator_says_what_it_is_and_what_tools_wait_for() {
        let text = banner("--emulator --memory", "[::]:8081");
        let (_, end) = text.split_once("\nEMULATOR MODE: ").unwrap();
        let (loud, end) = end.split_once('\n').unwrap();
        assert!(loud.contains("everybody knows its key"), "{text}");
        assert_eq!(end, "\nNow listening on: http://localhost:8081\nStarted\r\n");
        assert_eq!(text.matches("Started").count(), 1);
        for line in [
            "AccountEndpoint=https://localhost:8081/;",
            "AccountEndpoint=http://localhost:8081/;",
            "DisableServerCertificateValidation=True;",
            "Compute gateway: https://localhost:8903/\n",
            "Health checks: http://localhost:8080/ready\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let text = banner(&format!("--emulator --memory --key {OWN}"), "10.0.0.5:8081");
        assert!(!text.contains("everybody knows") && !text.contains(OWN), "{text}");
        assert!(text.contains("\nNow listening on: http://10.0.0.5:8081\n"), "{text}");
    }

    #[test]
    fn what_is_not_usual_is_shown() {
        let flags = "--memory --durability relaxed --test-clock --compute-listen 127.0.0.1:8903";
        let text = banner(flags, "[::1]:1");
        assert!(text.contains("\nCompute gateway: https://localhost:8903/\n"), "{text}");
        assert!(text.contains("https://localhost:1/"), "{text}");
        assert!(text.contains("Data: in memory, "), "{text}");
        assert!(text.contains("Durability: relaxed, "), "{text}");
        assert!(text.contains("Clock: a test clock, "), "{text}");
        assert!(text.ends_with("\nStarted\n"), "{text}");
    }
}
