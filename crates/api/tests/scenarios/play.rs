//! Plays one script.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use dayfly_api::hybrid_row::{OPERATION, RESULT};
use dayfly_engine::QuerySteps;
use http::Response;
use serde_json::{Map, Value};

use crate::frames;
use crate::rows;
use crate::script::{Act, Expected, Request, Step, parse};
use crate::server::{Engine, Mode, Server};

/// How many requests there were where they may be frames, and how many were.
pub(crate) static ASKED: AtomicUsize = AtomicUsize::new(0);
pub(crate) static FRAMED: AtomicUsize = AtomicUsize::new(0);

/// Left out of whole bodies.
const SYSTEM: &[&str] = &[
    "_rid",
    "_self",
    "_etag",
    "_attachments",
    "_colls",
    "_users",
    "_docs",
    "_sprocs",
    "_triggers",
    "_udfs",
    "_conflicts",
];

pub(crate) fn script(path: &Path, engine: Engine) -> Result<(), String> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let text = std::fs::read_to_string(path).map_err(|why| format!("{name}: {why}"))?;
    let steps = parse(&text).map_err(|why| format!("{folder}/{name}, {why}"))?;
    let mut mode = Mode::default();
    let mut engine = engine;
    for step in &steps {
        match step.act {
            Act::Strict => mode.engine.strict = true,
            Act::LenientOrderBy => mode.engine.lenient_order_by = true,
            Act::OneBucket => engine = engine.with_one_bucket(),
            Act::ChangeDelay(seconds) => mode.engine.change_delay_seconds = seconds,
            Act::ChangeGuard(percent) => mode.engine.change_guard_percent = Some(percent),
            Act::QuerySteps { page, whole } => {
                mode.engine.query_steps = QuerySteps { page, whole, ..QuerySteps::USUAL };
            }
            Act::NoTestClock => mode.no_test_clock = true,
            Act::Serverless => mode.engine.serverless = true,
            Act::PartitionQuota(bytes) => mode.engine.partition_quota = Some(bytes),
            Act::ContainerQuota(bytes) => mode.engine.container_quota = Some(bytes),
            _ => {}
        }
    }
    let mut player = Player {
        server: Server::new(engine, mode),
        kept: HashMap::new(),
        last: None,
        lines: text.lines().map(ToOwned::to_owned).collect(),
        reads_log: text.contains("/_admin/v1/requests"),
    };
    for step in &steps {
        player
            .step(step)
            .map_err(|why| format!("{folder}/{name}, line {} ({engine:?}): {why}", step.line))?;
    }
    if update() {
        std::fs::write(path, player.lines.join("\n") + "\n").map_err(|why| why.to_string())?;
    }
    Ok(())
}

fn update() -> bool {
    std::env::var_os("UPDATE").is_some()
}

struct Player {
    server: Server,
    kept: HashMap<String, String>,
    last: Option<Response<Bytes>>,
    lines: Vec<String>,
    /// It looks at the request log, which tells how requests came.
    reads_log: bool,
}

impl Player {
    fn step(&mut self, step: &Step) -> Result<(), String> {
        match &step.act {
            Act::Strict
            | Act::LenientOrderBy
            | Act::OneBucket
            | Act::ChangeDelay(_)
            | Act::ChangeGuard(_)
            | Act::QuerySteps { .. }
            | Act::Serverless
            | Act::ContainerQuota(_)
            | Act::PartitionQuota(_)
            | Act::NoTestClock => {}
            Act::Clock(second) => self.server.clock(*second),
            Act::Pass(seconds) => self.server.wall.pass(*seconds),
            Act::Jump(second) => self.server.wall.jump(*second),
            Act::Reboot(second) => {
                self.server.wall.reboot(*second);
                self.server.crash();
            }
            Act::Tick => self.server.tick(),
            Act::Purge => self.server.purge(),
            Act::Background => self.server.background(),
            Act::Restart => self.server.restart(),
            Act::Crash => self.server.crash(),
            Act::Request(request) => self.request(request)?,
            Act::Keep { name, source } => {
                let value = self.value(source).ok_or_else(|| format!("there is no {source}"))?;
                self.kept.insert(name.clone(), value);
            }
        }
        Ok(())
    }

    fn request(&mut self, request: &Request) -> Result<(), String> {
        let mut sign = String::from("name");
        let mut body = Vec::new();
        let mut headers = Vec::new();
        let mut in_rows = false;
        for (name, value) in &request.headers {
            let value = self.fill(value);
            match name.as_str() {
                "sign" => sign = value,
                "body-bytes" => body = rows::from_hex(&value)?,
                "body-rows" => in_rows = true,
                _ => headers.push((name.clone(), value)),
            }
        }
        let path = self.fill(&request.path);
        if body.is_empty() {
            body = repeated(&self.fill(request.body.trim_end())).into_bytes();
        }
        if in_rows {
            let list = serde_json::from_slice(&body).map_err(|why| format!("no rows: {why}"))?;
            body = rows::write(&OPERATION, &list)?;
        }
        let can_be_framed =
            !self.reads_log && request.expected_headers.iter().all(|(name, _)| frames::tells(name));
        let framed = can_be_framed
            .then(|| self.server.send_framed(&request.method, &path, &headers, &body, &sign))
            .flatten()
            .transpose()?;
        let is_framed = framed.is_some();
        if self.server.is_asked_in_frames() {
            ASKED.fetch_add(1, Ordering::Relaxed);
            FRAMED.fetch_add(usize::from(is_framed), Ordering::Relaxed);
        }
        let response = framed
            .unwrap_or_else(|| self.server.send(&request.method, &path, &headers, body, &sign));
        let response = in_text(response)?;
        let said = String::from_utf8_lossy(response.body()).into_owned();
        if response.status().as_u16() != request.status {
            return Err(format!("expected {}, got {} {said}", request.status, response.status()));
        }
        self.check_body(request, &said)?;
        for (name, expected) in &request.expected_headers {
            let value = response.headers().get(name).and_then(|value| value.to_str().ok());
            check_header(name, &self.fill(expected), value)?;
        }
        if !is_framed {
            always_there(&response)?;
        }
        self.last = Some(response);
        Ok(())
    }

    fn check_body(&mut self, request: &Request, said: &str) -> Result<(), String> {
        match &request.expected {
            Expected::Nothing => Ok(()),
            Expected::Part(part) if said.lines().any(|line| line == part) => Ok(()),
            Expected::Part(part) => {
                let part: Value = serde_json::from_str(&self.fill(part)).map_err(|why| {
                    format!("the expected part is not JSON, and no line of a text: {why}")
                })?;
                let body = serde_json::from_str(said).map_err(|_| format!("not JSON: {said}"))?;
                check_part("", &part, Some(&body)).map_err(|why| format!("{why}\n  in {said}"))
            }
            Expected::Whole(whole) => {
                let got = plain(said);
                if update() {
                    self.lines[request.status_line - 1] = format!("> {} {got}", request.status);
                    return Ok(());
                }
                let whole = self.fill(whole);
                if got == whole {
                    Ok(())
                } else {
                    Err(format!("\n  expected {whole}\n  got      {got}"))
                }
            }
        }
    }

    /// Puts kept values where their names stand in braces.
    fn fill(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.kept {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }

    fn value(&self, source: &str) -> Option<String> {
        let last = self.last.as_ref()?;
        let Some(path) = source.strip_prefix("body.") else {
            return Some(last.headers().get(source)?.to_str().ok()?.to_owned());
        };
        let body: Value = serde_json::from_slice(last.body()).ok()?;
        let found = path.split('.').try_fold(&body, |at, part| match at {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            at => at.get(part),
        })?;
        Some(found.as_str().map_or_else(|| found.to_string(), ToOwned::to_owned))
    }
}

/// The same answer, with JSON in place of binary rows.
fn in_text(response: Response<Bytes>) -> Result<Response<Bytes>, String> {
    let kind = response.headers().get("content-type");
    let is_text = match kind {
        Some(kind) => kind != "application/octet-stream",
        // A frame does not say it: who asks in rows knows rows.
        None => response.body().first() != Some(&0x81),
    };
    if is_text {
        return Ok(response);
    }
    let mut results = rows::read(&RESULT, response.body())?;
    for result in &mut results {
        if let Some(body) = result.get_mut("resourceBody")
            && let Some(text) = body.as_str()
        {
            *body = serde_json::from_str(text).map_err(|why| format!("not JSON: {text} {why}"))?;
        }
    }
    Ok(response.map(|_| Value::Array(results).to_string().into()))
}

/// Writes `<x*5>` out as `xxxxx`.
fn repeated(text: &str) -> String {
    let Some((before, rest)) = text.split_once('<') else { return text.to_owned() };
    match rest.split_once('>').and_then(|(inside, after)| {
        let (what, count) = inside.split_once('*')?;
        Some((what.repeat(count.parse().ok()?), after))
    }) {
        Some((written, after)) => format!("{before}{written}{}", repeated(after)),
        None => format!("{before}<{}", repeated(rest)),
    }
}

/// A whole body for comparison: sorted, without system properties and without
/// the activity id.
fn plain(said: &str) -> String {
    match serde_json::from_str::<Value>(said) {
        Ok(body) => without_system(&body).to_string(),
        Err(_) if said.is_empty() => "<empty>".to_owned(),
        Err(_) => said.trim_end().to_owned(),
    }
}

fn without_system(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> =
                members.keys().filter(|name| !SYSTEM.contains(&name.as_str())).collect();
            names.sort();
            let plain: Map<String, Value> = names
                .into_iter()
                .map(|name| (name.clone(), without_system(&members[name])))
                .collect();
            Value::Object(plain)
        }
        Value::Array(items) => Value::Array(items.iter().map(without_system).collect()),
        Value::String(text) => {
            Value::String(text.split("\r\nActivityId").next().unwrap_or_default().to_owned())
        }
        value => value.clone(),
    }
}

fn check_part(at: &str, part: &Value, value: Option<&Value>) -> Result<(), String> {
    match (part, value) {
        (Value::String(wish), None) if wish == "<absent>" => Ok(()),
        (Value::String(wish), Some(_)) if wish == "<any>" => Ok(()),
        (Value::String(wish), Some(Value::String(text)))
            if wish.strip_suffix("...").is_some_and(|start| text.starts_with(start)) =>
        {
            Ok(())
        }
        (Value::Object(members), Some(value @ Value::Object(_))) => {
            members.iter().try_for_each(|(name, part)| {
                check_part(&format!("{at}.{name}"), part, value.get(name))
            })
        }
        (Value::Array(parts), Some(Value::Array(values))) if parts.len() == values.len() => {
            parts.iter().zip(values).enumerate().try_for_each(|(n, (part, value))| {
                check_part(&format!("{at}.{n}"), part, Some(value))
            })
        }
        (part, Some(value)) if *part == without_system(value) => Ok(()),
        (part, value) => Err(format!("{at}: expected {part}, got {value:?}")),
    }
}

fn check_header(name: &str, expected: &str, value: Option<&str>) -> Result<(), String> {
    match (expected, value) {
        ("<absent>", None) => Ok(()),
        ("<any>", Some(_)) => Ok(()),
        (expected, Some(value)) if expected == value && expected != "<absent>" => Ok(()),
        (expected, Some(value))
            if decoded(expected, value).is_some_and(|told| told == expected) =>
        {
            Ok(())
        }
        _ => {
            let told = value.and_then(|value| decoded(expected, value));
            Err(format!("header {name}: expected {expected}, got {value:?} {told:?}"))
        }
    }
}

/// A header's value in clear text, with the word that says how it is written.
fn decoded(expected: &str, value: &str) -> Option<String> {
    let (kind, _) = expected.split_once(' ')?;
    let text = match kind {
        "base64" => String::from_utf8(STANDARD.decode(value).ok()?).ok()?,
        "escaped" => percent_encoding::percent_decode_str(value).decode_utf8().ok()?.into_owned(),
        _ => return None,
    };
    Some(format!("{kind} {text}"))
}

/// What every response must have, whatever it answers; and what none may have, since
/// most clients cannot read it: a session token of several ranges.
fn always_there(response: &Response<Bytes>) -> Result<(), String> {
    for name in [
        "x-ms-activity-id",
        "x-ms-request-charge",
        "x-ms-version",
        "x-ms-serviceversion",
        "x-ms-gatewayversion",
        "x-ms-request-duration-ms",
        "date",
        "content-type",
    ] {
        if !response.headers().contains_key(name) {
            return Err(format!("the response has no {name}"));
        }
    }
    let token = response.headers().get("x-ms-session-token");
    match token.and_then(|token| token.to_str().ok()) {
        Some(token) if token.contains(',') => Err(format!("a token of several ranges: {token}")),
        _ => Ok(()),
    }
}
