//! The page at `/_explorer/`, where emulators have their portal.
//!
//! Tools ask for it to learn whether the server is up, and people who know the emulators
//! look there first. It is one text: nothing of a request comes into it, and it loads
//! nothing.

/// The page.
pub(crate) const PAGE: &str = concat!(
    r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'">
<title>dayfly</title>
</head>
<body>
<h1>dayfly "#,
    env!("CARGO_PKG_VERSION"),
    r#"</h1>
<p>A JSON document database that speaks the Azure Cosmos DB for NoSQL REST API, with exact
time to live. This server runs.</p>
<p>A portal is not there yet. Until then <code>dayfly ls</code>, <code>dayfly query</code>
and <code>dayfly ttl</code> show what is in the server.</p>
<ul>
<li>the API: this address, without a path; every request is signed with the key</li>
<li><a href="/ready">/ready</a>: whether it takes writes; <a href="/alive">/alive</a>: whether
it lives</li>
<li><a href="/metrics">/metrics</a>: for Prometheus</li>
<li><a href="/_explorer/emulator.pem">/_explorer/emulator.pem</a>: the certificate</li>
<li>/_admin/v1/: clock, figures, purge and reset, with the key</li>
</ul>
<p>What to read: README.md, docs/sdks.md for each SDK, docs/ci.md for tests and containers,
COMPATIBILITY.md for what works.</p>
</body>
</html>
"#
);
