//! Random tests, seed after seed, on all cores, until one fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What failed, in words.
pub(super) type Outcome<T = ()> = Result<T, String>;

/// A run over many seeds.
pub(super) struct Seeds {
    /// The environment variable that says how many things are wanted.
    pub(super) count: &'static str,
    /// How many, if it does not.
    pub(super) usual: u64,
    /// The environment variable with the first seed.
    pub(super) first: &'static str,
    /// How many things a seed makes, and what they are.
    pub(super) each: u64,
    pub(super) what: &'static str,
    /// How many things are told of in one line of progress.
    pub(super) progress: u64,
}

impl Seeds {
    /// Plays one seed after another. The first that failed, and why.
    pub(super) fn play(&self, play: impl Fn(u64) -> Outcome + Sync) -> Option<(u64, String)> {
        let asked = number(self.count);
        let first = number(self.first).unwrap_or(1);
        let end = first + asked.unwrap_or(self.usual).div_ceil(self.each);
        let next = AtomicU64::new(first);
        let failure = Mutex::new(None);
        let worker = || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= end || failure.lock().unwrap().is_some() {
                    break;
                }
                if let Err(why) = attempt(|| play(seed)) {
                    *failure.lock().unwrap() = Some((seed, why));
                }
                let done = (seed + 1 - first) * self.each;
                if asked.is_some() && done.is_multiple_of(self.progress) {
                    println!("{done} {}", self.what);
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(worker);
            }
        });
        failure.into_inner().unwrap()
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

/// Plays something; a panic is a failure like any other.
pub(super) fn attempt(play: impl FnOnce() -> Outcome) -> Outcome {
    catch_unwind(AssertUnwindSafe(play)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("without a word")))
    })
}
