//! The text of a script, taken apart.

/// One step, and the lines it stands on.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) line: usize,
    pub(crate) act: Act,
}

#[derive(Debug)]
pub(crate) enum Act {
    Strict,
    LenientOrderBy,
    OneBucket,
    ChangeDelay(u64),
    ChangeGuard(f64),
    NoTestClock,
    Serverless,
    ContainerQuota(u64),
    PartitionQuota(u64),
    Clock(u64),
    Pass(u64),
    QuerySteps { page: u64, whole: u64 },
    Jump(u64),
    Tick,
    Purge,
    Background,
    Restart,
    Crash,
    Reboot(u64),
    Request(Request),
    Keep { name: String, source: String },
}

#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) status: u16,
    pub(crate) expected: Expected,
    /// The line of the status, for updates.
    pub(crate) status_line: usize,
    pub(crate) expected_headers: Vec<(String, String)>,
}

#[derive(Debug, Default)]
pub(crate) enum Expected {
    /// The status alone.
    #[default]
    Nothing,
    /// The whole body.
    Whole(String),
    /// A part of the body.
    Part(String),
}

const METHODS: &[&str] =
    &["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", "TRACE", "BREW"];

pub(crate) fn parse(text: &str) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim_end();
        let words: Vec<&str> = text.split_whitespace().collect();
        let act = match words.as_slice() {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            ["strict"] => Act::Strict,
            ["lenient-order-by"] => Act::LenientOrderBy,
            ["one-bucket"] => Act::OneBucket,
            ["ttl-change-delay", seconds] => Act::ChangeDelay(number(line, seconds)?),
            ["ttl-change-guard", percent] => {
                Act::ChangeGuard(percent.parse().map_err(|_| at(line, "a bad guard"))?)
            }
            ["query-steps", page, whole] => {
                Act::QuerySteps { page: number(line, page)?, whole: number(line, whole)? }
            }
            ["no-test-clock"] => Act::NoTestClock,
            ["serverless"] => Act::Serverless,
            ["partition-quota", bytes] => Act::PartitionQuota(number(line, bytes)?),
            ["container-quota", bytes] => Act::ContainerQuota(number(line, bytes)?),
            ["clock", second] => Act::Clock(number(line, second)?),
            ["pass", seconds] => Act::Pass(number(line, seconds)?),
            ["jump", second] => Act::Jump(number(line, second)?),
            ["tick"] => Act::Tick,
            ["purge"] => Act::Purge,
            ["background"] => Act::Background,
            ["restart"] => Act::Restart,
            ["crash"] => Act::Crash,
            ["reboot", second] => Act::Reboot(number(line, second)?),
            ["let", name, "=", source] => {
                Act::Keep { name: (*name).to_owned(), source: (*source).to_owned() }
            }
            [method, path] if METHODS.contains(method) => Act::Request(Request {
                method: (*method).to_owned(),
                path: (*path).to_owned(),
                ..Request::default()
            }),
            _ => {
                continue_request(&mut steps, line, text)?;
                continue;
            }
        };
        steps.push(Step { line, act });
    }
    for step in &steps {
        if let Act::Request(request) = &step.act
            && request.status == 0
        {
            return Err(at(step.line, "the request has no answer"));
        }
    }
    Ok(steps)
}

/// A line that belongs to the request before it: a header, the body, or a part
/// of the answer.
fn continue_request(steps: &mut [Step], line: usize, text: &str) -> Result<(), String> {
    let Some(Step { act: Act::Request(request), .. }) = steps.last_mut() else {
        return Err(at(line, "not a step"));
    };
    if let Some(answer) = text.strip_prefix('>') {
        return continue_answer(request, line, answer.trim());
    }
    if request.status != 0 {
        return Err(at(line, "not a step"));
    }
    let body_starts = text.starts_with(['{', '[', '"']) || !text.contains(':');
    if !request.body.is_empty() || body_starts {
        request.body.push_str(text);
        request.body.push('\n');
    } else if let Some((name, value)) = text.split_once(':') {
        request.headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(())
}

fn continue_answer(request: &mut Request, line: usize, answer: &str) -> Result<(), String> {
    if request.status != 0 {
        let (name, value) = answer.split_once(':').ok_or_else(|| at(line, "not a header"))?;
        request.expected_headers.push((name.trim().to_owned(), value.trim().to_owned()));
        return Ok(());
    }
    let (status, rest) = answer.split_once(' ').unwrap_or((answer, ""));
    request.status = status.parse().map_err(|_| at(line, "a bad status"))?;
    request.status_line = line;
    let rest = rest.trim();
    request.expected = if let Some(part) = rest.strip_prefix('~') {
        Expected::Part(part.trim().to_owned())
    } else if rest.is_empty() {
        Expected::Nothing
    } else {
        Expected::Whole(rest.to_owned())
    };
    Ok(())
}

fn number(line: usize, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| at(line, "a bad number of seconds"))
}

fn at(line: usize, what: &str) -> String {
    format!("line {line}: {what}")
}
