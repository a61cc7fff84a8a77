//! `crash`: no acknowledged write is ever lost, and nothing is ever half there.
//!
//! Each round runs the real server on the folder that the last round left, and
//! writers that remember what they were told. After a moment the server is
//! killed with -9. Then the folder is opened here and everything in it is
//! compared with itself; then the server is started again, and every id is
//! read: it has to be the last acknowledged version, or what the one request
//! makes of it that had no answer yet. Some of the writes are transactional
//! batches, and of such a request all is there or nothing; some are frames of
//! direct mode, and items are read both ways. A consumer follows the change feed
//! meanwhile, goes on from its last token after each kill, and has to have been
//! told what was done, and nothing else. Once a run, the server is also killed
//! while it starts.
//!
//! kill -9 leaves the system's page cache, so this shows what a crash of the
//! process does, not what a power cut does.

mod batch;
mod book;
mod consumer;
mod verify;
mod ways;
mod writer;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dayfly_engine::check::Checked;
use dayfly_engine::{Engine, EngineSettings};
use dayfly_storage::{Local, LocalOptions, Store};
use tempfile::TempDir;

use crate::direct::trust;
use crate::random::Random;
use crate::server::{Server, dayfly};
use crate::{Profile, Result, build, failed};
use book::{Book, DATABASE, SHARED, Told};
use consumer::Consumer;
use ways::Ways;

/// How many connections write at once.
const WRITERS: u64 = 6;

/// A folder serves so many rounds; then a fresh one is taken.
const ROUNDS_PER_FOLDER: u32 = 20;

/// Now and then a round goes on until the purge has run beside the writes.
const LONG_ROUND_EVERY: u32 = 5;
const LONG_ROUND: Duration = Duration::from_millis(1100);

/// How often the server is killed while it starts, in the one round that does.
const STARTS_CUT_SHORT: u32 = 4;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often the server is killed.
    #[arg(long, default_value_t = 100, value_name = "N")]
    rounds: u32,
    /// Plays the same choices again; the timing is never the same.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// The server; without it, the debug build is made and used.
    #[arg(long, value_name = "PATH")]
    bin: Option<PathBuf>,
}

/// Runs the loop.
pub(crate) fn run(options: &Options) -> Result<()> {
    let program = match &options.bin {
        Some(program) => program.clone(),
        None => build("dayfly", Profile::Debug)?,
    };
    let seed = options.seed.unwrap_or_else(seed_of_now);
    println!("crash: {} rounds, seed {seed}", options.rounds);
    let mut run = Run {
        program,
        random: Random::new(seed),
        folder: fresh_folder()?,
        books: Vec::new(),
        earlier: Told::NOTHING,
        consumer: Consumer::new(0),
        changes: 0,
    };
    let outcome = run.rounds(options.rounds);
    if let Err(violation) = outcome {
        let folder = run.folder.keep();
        return Err(format!("seed {seed}, folder {}: {violation}", folder.display()));
    }
    let Told { writes, batches, framed } = run.told();
    println!(
        "{} rounds, {writes} acknowledged writes, {batches} of them batches and {framed} in \
         frames, 0 lost; {} changes told, each once",
        options.rounds, run.changes
    );
    Ok(())
}

fn seed_of_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) ^ now.as_secs()
}

fn fresh_folder() -> Result<TempDir> {
    tempfile::Builder::new().prefix("dayfly-crash-").tempdir().map_err(failed("a folder"))
}

struct Run {
    program: PathBuf,
    random: Random,
    folder: TempDir,
    /// What each writer knows.
    books: Vec<Book>,
    /// What they were told in the folders before this one.
    earlier: Told,
    /// Whoever follows the feed of the container that all of them share.
    consumer: Consumer,
    /// So many changes the consumers of all folders were told.
    changes: usize,
}

impl Run {
    fn rounds(&mut self, rounds: u32) -> Result<()> {
        for round in 1..=rounds {
            let begun = Instant::now();
            let server = if (round - 1) % ROUNDS_PER_FOLDER == 0 {
                self.start_over()?
            } else {
                self.start_and_verify()?
            };
            let writes = self.load_and_kill(server, round)?;
            if round == rounds.div_ceil(2) {
                self.cut_starts_short()?;
            }
            let checked = self.check(round)?;
            println!(
                "round {round}: {writes} acknowledged writes; {} containers and {} items are \
                 whole; {} ms",
                checked.containers,
                checked.items,
                begun.elapsed().as_millis()
            );
        }
        self.finish()?;
        self.check(0).map(|_| ())
    }

    /// A new folder, and a database and a container in it.
    fn start_over(&mut self) -> Result<Server> {
        if !self.books.is_empty() {
            self.finish()?;
        }
        self.folder = fresh_folder()?;
        self.earlier = self.told();
        self.books = (0..WRITERS).map(|writer| Book::new(writer, self.random.next())).collect();
        let server = Server::start(&self.program, &self.data())?;
        let mut client = server.connect()?;
        client.must("POST", "/dbs", &[], &format!("{{\"id\":\"{DATABASE}\"}}"))?;
        let path = format!("/dbs/{DATABASE}/colls");
        client.must("POST", &path, &[], &writer::definition(SHARED, Some(-1), true))?;
        self.consumer = Consumer::new(self.random.next());
        self.consumer.begin(&mut client)?;
        Ok(server)
    }

    /// Nothing more comes to this folder.
    fn finish(&mut self) -> Result<()> {
        let server = self.start_and_verify()?;
        self.consumer.finish(&mut server.connect()?, &self.books)?;
        self.changes += self.consumer.told();
        server.stop()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Starts the server, and reads back what every writer wrote, and what the feed tells.
    fn start_and_verify(&mut self) -> Result<Server> {
        let server = Server::start(&self.program, &self.data())?;
        self.with_each_book(&server, verify::everything)?;
        self.consumer.catch_up(&mut server.connect()?)?;
        self.consumer.compare(&self.books)?;
        Ok(server)
    }

    /// Runs `work` with each book, each on a connection of its own, at once.
    fn with_each_book(
        &mut self,
        server: &Server,
        work: impl Fn(&mut Book, &mut Ways) -> Result<()> + Sync,
    ) -> Result<()> {
        let work = &work;
        let config = trust(server)?;
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for book in &mut self.books {
                let mut ways = Ways::open(server, &config)?;
                threads.push(scope.spawn(move || {
                    work(book, &mut ways).map_err(|violation| format!("{book}: {violation}"))
                }));
            }
            threads.into_iter().try_for_each(join)
        })
    }

    /// Lets the writers write and the consumer read, and kills the server in the midst of it.
    /// Returns how many writes were acknowledged.
    fn load_and_kill(&mut self, mut server: Server, round: u32) -> Result<u64> {
        let before = self.told().writes;
        let config = trust(&server)?;
        let mut wait = Duration::from_millis(5 + self.random.below(196));
        if round.is_multiple_of(LONG_ROUND_EVERY) {
            wait += LONG_ROUND;
        }
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for book in &mut self.books {
                let mut ways = Ways::open(&server, &config)?;
                threads.push(scope.spawn(move || {
                    writer::write(book, &mut ways)
                        .map_err(|violation| format!("{book}: {violation}"))
                }));
            }
            let mut client = server.connect()?;
            let consumer = &mut self.consumer;
            threads.push(scope.spawn(move || {
                let followed = consumer.follow(&mut client);
                followed.map_err(|violation| format!("the consumer: {violation}"))
            }));
            thread::sleep(wait);
            server.kill()?;
            threads.into_iter().try_for_each(join)
        })?;
        Ok(self.told().writes - before)
    }

    /// What was acknowledged so far.
    fn told(&self) -> Told {
        self.books.iter().fold(self.earlier, |told, book| told.and(book.told))
    }

    /// Starts the server and kills it before it has started.
    fn cut_starts_short(&mut self) -> Result<()> {
        for _ in 0..STARTS_CUT_SHORT {
            let mut command = dayfly(&self.program, &self.data());
            let mut child = command.stdout(Stdio::null()).spawn().map_err(failed("starting"))?;
            thread::sleep(Duration::from_millis(1 + self.random.below(60)));
            child.kill().map_err(failed("kill"))?;
            child.wait().map_err(failed("waiting"))?;
        }
        println!("the start was killed {STARTS_CUT_SHORT} times");
        Ok(())
    }

    /// Opens the folder here and compares everything with itself. Every other
    /// time it is left as another crash would leave it.
    fn check(&mut self, round: u32) -> Result<Checked> {
        let engine = open(&self.data())?;
        if self.random.once_in(3) {
            engine.purge_all().map_err(failed("purging"))?;
        }
        let checked = engine.check().map_err(failed("what is stored is not whole"))?;
        if round.is_multiple_of(2) {
            engine.close().map_err(failed("closing the folder"))?;
        }
        Ok(checked)
    }
}

fn open(folder: &Path) -> Result<Engine> {
    let store = Local::open(folder, LocalOptions::default());
    let store: Arc<dyn Store> = Arc::new(store.map_err(failed("opening the folder"))?);
    Engine::open(store, EngineSettings::default()).map_err(failed("opening the engine"))
}

fn join(thread: thread::ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    thread.join().unwrap_or_else(|_| Err("a writer panicked".to_owned()))
}
