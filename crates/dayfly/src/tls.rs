//! The certificate: made by us, kept with the data, and made again when the
//! names it is for have changed or its end is near.
//!
//! One file holds a line that says what it is for, the certificate and its
//! private key, so that the three always belong together:
//!
//! ```text
//! dayfly: a certificate for localhost, 127.0.0.1, ::1; ends at 1771000000
//! -----BEGIN CERTIFICATE-----
//! -----BEGIN PRIVATE KEY-----
//! ```
//!
//! Without a data folder it is kept in the user's cache, so that whoever came to trust
//! it still does after a restart. Where that cannot be, there is a new one at each start.
//! A user's own certificate is read from its files as it is.

mod end;

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::TlsAcceptor;

use self::end::end_of;
use crate::files;

/// Below the folder.
const FILE: &str = "tls.pem";

/// Below the user's cache.
const CACHE: &str = "dayfly";

/// The longest file of a certificate or a key.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Some clients refuse certificates that live longer than 825 days.
const LIFE_SECONDS: u64 = 820 * DAY_SECONDS;

/// A certificate that ends sooner than this is made again.
pub(crate) const RENEW_SECONDS: u64 = 60 * DAY_SECONDS;

pub(crate) const DAY_SECONDS: u64 = 24 * 60 * 60;

/// What it takes to speak TLS.
pub(crate) struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    /// For clients that want to trust it.
    pub(crate) certificate_pem: String,
    /// The second at which it ends.
    pub(crate) end: u64,
}

/// Where a certificate is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// In a folder that was asked for: it must work.
    Folder(PathBuf),
    /// In the user's cache, if there is one and it can be written.
    Cache(Option<PathBuf>),
}

impl Home {
    /// Our part of the user's cache, by the environment.
    pub(crate) fn cache(variable: impl Fn(&str) -> Option<OsString>) -> Home {
        let folder =
            |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
        Home::Cache(cache.map(|cache| cache.join(CACHE)))
    }

    fn file(&self) -> Option<PathBuf> {
        match self {
            Home::Folder(folder) => Some(folder.join(FILE)),
            Home::Cache(folder) => folder.as_ref().map(|folder| folder.join(FILE)),
        }
    }
}

/// Where a certificate comes from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// We make it, for these names.
    Made { home: Home, names: Vec<String> },
    /// The user has one.
    Files { certificate: PathBuf, key: PathBuf },
}

impl Source {
    /// The certificate as it is at `now`; one that we make is made again in time.
    pub(crate) fn open(&self, now: u64) -> Result<Tls, String> {
        match self {
            Source::Made { home, names } => prepare(home, names, now),
            Source::Files { certificate, key } => {
                let chain = files::read(certificate, "--tls-cert", FILE_BYTES_MAX)?;
                let key = files::read(key, "--tls-key", FILE_BYTES_MAX)?;
                accept_with(&chain, &key)
            }
        }
    }
}

/// The certificate in its `home`, or a new one, for `names` at `now`.
fn prepare(home: &Home, names: &[String], now: u64) -> Result<Tls, String> {
    let path = home.file();
    let kept = path.as_deref().and_then(|path| fs::read_to_string(path).ok());
    if let Some(text) = kept.filter(|text| is_good(text, names, now)) {
        match accept_with(&text, &text) {
            Ok(tls) => return Ok(tls),
            Err(error) => tracing::warn!(%error, "the certificate is damaged and is made again"),
        }
    }
    let text =
        make(names, now).map_err(|error| format!("No certificate could be made: {error}"))?;
    if let Some(path) = path
        && let Err(error) = keep(&path, &text)
    {
        let message = format!("{} could not be written: {error}.", path.display());
        match home {
            Home::Folder(_) => return Err(message),
            Home::Cache(_) => tracing::debug!("the certificate is for this start only: {message}"),
        }
    }
    accept_with(&text, &text)
}

/// The names a client may call this server by.
pub(crate) fn names(
    listen: impl Iterator<Item = IpAddr>,
    more: impl Iterator<Item = String>,
) -> Vec<String> {
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    let listen = listen.filter(|ip| !ip.is_unspecified()).map(|ip| ip.to_canonical().to_string());
    for name in host_name().into_iter().chain(listen).chain(more) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The name of this machine, if it can stand in a certificate.
pub(crate) fn host_name() -> Option<String> {
    name_of(rustix::system::uname().nodename().to_str().ok()?)
}

/// The name of a host, if it can stand in a certificate.
pub(crate) fn name_of(host: &str) -> Option<String> {
    let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(name).is_ok().then(|| name.to_owned())
}

fn title(names: &[String]) -> String {
    format!("dayfly: a certificate for {}; ends at ", names.join(", "))
}

fn is_good(text: &str, names: &[String], now: u64) -> bool {
    text.lines()
        .next()
        .and_then(|line| line.strip_prefix(&title(names)))
        .and_then(|end| end.parse().ok())
        .is_some_and(|end: u64| end > now.saturating_add(RENEW_SECONDS))
}

fn make(names: &[String], now: u64) -> Result<String, rcgen::Error> {
    let end = now.saturating_add(LIFE_SECONDS);
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let mut params = CertificateParams::new(names)?;
    params.not_before = epoch + Duration::from_secs(now.saturating_sub(DAY_SECONDS));
    params.not_after = epoch + Duration::from_secs(end);
    params.distinguished_name.push(DnType::CommonName, "dayfly");
    params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(format!("{}{end}\n{}{}", title(names), certificate.pem(), key.serialize_pem()))
}

fn keep(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    write(path, text, 0o600)
}

/// Shows a certificate, without its key, in a file for clients. The server works without
/// it, so a file that cannot be written does not stop it.
pub(crate) fn export(path: &Path, certificate_pem: &str) {
    if let Err(error) = write(path, certificate_pem, 0o644) {
        tracing::warn!("the certificate is not in {}: {error}", path.display());
    }
}

/// Written aside and renamed, so that nobody meets half of it, whatever crashes.
fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let aside = path.with_extension("new");
    if let Err(error) = fs::remove_file(&aside)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(mode).open(&aside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&aside, path)
}

fn accept_with(chain: &str, key: &str) -> Result<Tls, String> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(chain.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(damaged)?;
    let end = certificates.first().and_then(|first| end_of(first));
    let end = end.ok_or_else(|| damaged("there is none in its file"))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(damaged)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(damaged)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Tls { acceptor: Arc::new(config).into(), certificate_pem: public_part(chain), end })
}

fn damaged(error: impl std::fmt::Display) -> String {
    format!("The certificate cannot be used: {error}.")
}

/// The certificates alone, without a title and without a key.
fn public_part(text: &str) -> String {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let parts = text.split(BEGIN).skip(1).filter_map(|part| part.split_once(END));
    parts.flat_map(|(inside, _)| [BEGIN, inside, END, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use std::iter::once;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const NOW: u64 = 1_700_000_000;

    fn pem(folder: &Path, names: &[&str], now: u64) -> String {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        prepare(&Home::Folder(folder.to_owned()), &names, now).unwrap().certificate_pem
    }

    #[test]
    fn the_cache_is_where_the_environment_says() {
        let cache = |xdg: &str, home: &str| {
            Home::cache(|name| match name {
                "XDG_CACHE_HOME" => Some(xdg.into()),
                "HOME" => Some(home.into()),
                _ => None,
            })
        };
        let at = |path: &str| Home::Cache(Some(path.into()));
        assert_eq!(cache("/x", "/h"), at("/x/dayfly"));
        assert_eq!(cache("", "/h"), at("/h/.cache/dayfly"));
        assert_eq!(cache("x", "/h"), at("/h/.cache/dayfly"));
        assert_eq!(cache("", ""), Home::Cache(None));
        assert_eq!(Home::cache(|_| None), Home::Cache(None));
    }

    #[test]
    fn a_folder_that_was_asked_for_must_work_and_the_cache_need_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let names = ["localhost".to_owned()];
        let below = file.join("below");
        prepare(&Home::Cache(Some(below.clone())), &names, NOW).unwrap();
        assert!(prepare(&Home::Folder(below), &names, NOW).is_err());
    }

    #[test]
    fn a_certificate_is_kept_until_its_names_change_or_its_end_is_near() {
        let folder = tempfile::tempdir().unwrap();
        let first = pem(folder.path(), &["localhost"], NOW);
        assert_eq!(pem(folder.path(), &["localhost"], NOW), first);

        let second = pem(folder.path(), &["localhost", "a"], NOW);
        assert_ne!(second, first);
        let last_day = NOW + LIFE_SECONDS - RENEW_SECONDS;
        assert_eq!(pem(folder.path(), &["localhost", "a"], last_day - 1), second);
        assert_ne!(pem(folder.path(), &["localhost", "a"], last_day), second);
    }

    #[test]
    fn the_end_of_a_certificate_is_known() {
        let end = |now: u64| {
            let text = make(&["localhost".to_owned()], now).unwrap();
            accept_with(&text, &text).unwrap().end
        };
        assert_eq!(end(NOW), NOW + LIFE_SECONDS);
        // In 2060 the time is written in another way.
        assert_eq!(end(2 * NOW), 2 * NOW + LIFE_SECONDS);
    }

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let make = || make(&["localhost".to_owned()], NOW).unwrap();
        let (first, second) = (make(), make());
        assert!(accept_with(&first, &second).is_err());
        assert!(accept_with("", &second).is_err());
        let chain = first.clone() + &second;
        let pem = accept_with(&chain, &first).unwrap().certificate_pem;
        assert_eq!(pem.matches("BEGIN CERTIFICATE").count(), 2);
        assert!(!pem.contains("PRIVATE"));
    }

    #[test]
    fn a_damaged_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let first = pem(folder.path(), &["localhost"], NOW);
        let path = folder.path().join(FILE);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("BEGIN PRIVATE", "BEGIN")).unwrap();
        assert_ne!(pem(folder.path(), &["localhost"], NOW), first);
    }

    #[test]
    fn nobody_else_reads_the_private_key() {
        let folder = tempfile::tempdir().unwrap();
        let public = pem(folder.path(), &["localhost"], NOW);
        let mode = fs::metadata(folder.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!public.contains("PRIVATE"));
        assert!(public.starts_with("-----BEGIN CERTIFICATE-----"));
    }

    #[test]
    fn a_certificate_has_each_name_once() {
        let more = ["a".to_owned(), "localhost".to_owned()];
        let names = names(once([127, 0, 0, 1].into()), more.into_iter());
        assert_eq!(names.iter().filter(|name| *name == "localhost").count(), 1);
        assert_eq!(names.iter().filter(|name| *name == "127.0.0.1").count(), 1);
        assert!(names.contains(&"a".to_owned()));
        let on_network = super::names(once([10, 0, 0, 5].into()), std::iter::empty());
        assert!(on_network.contains(&"10.0.0.5".to_owned()));
    }
}
