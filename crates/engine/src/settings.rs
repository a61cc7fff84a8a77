//! What can be set.

/// How many buckets a container can have: the number of one is eight bits.
pub(crate) const SLICES_MAX: usize = 256;

/// A week.
const FEED_RETENTION_MINUTES: u32 = 7 * 24 * 60;

/// What becomes of requests that ask for more than their throughput gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThroughputMode {
    /// They are counted, and carried out.
    #[default]
    Measured,
    /// They are refused, and told when to come again.
    Enforced,
}

impl ThroughputMode {
    /// As the admin API calls it.
    pub fn name(self) -> &'static str {
        match self {
            ThroughputMode::Measured => "measured",
            ThroughputMode::Enforced => "enforced",
        }
    }
}

/// What can be set.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct EngineSettings {
    /// Refuse what the strictest reading of the service refuses.
    pub strict: bool,
    /// How many ranges a new container has at least.
    pub ranges_min: usize,
    /// How many buckets a new container has at most; with fewer than it has ranges, some
    /// share one.
    pub slices_max: usize,
    /// How long a change of a container's default waits before it counts.
    pub change_delay_seconds: u64,
    /// A change that would expire more than this part of a container's items
    /// must be confirmed.
    pub change_guard_percent: Option<f64>,
    /// Sort in memory where the service refuses to sort without an index.
    pub lenient_order_by: bool,
    /// How many bytes of items may be alive in a container; without it the disk decides.
    pub container_quota: Option<u64>,
    /// The same for a logical partition.
    pub partition_quota: Option<u64>,
    /// How much work queries may make.
    pub query_steps: QuerySteps,
    /// How much they look at before they go another way.
    pub query_limits: QueryLimits,
    /// For how many minutes every version is told where somebody reads them all and the
    /// container's definition does not say.
    pub feed_retention_minutes: u32,
    /// Whether one request may remove everything: what is here is for tests.
    pub resettable: bool,
    /// What becomes of requests that ask for more than their throughput gives.
    pub throughput: ThroughputMode,
    /// Whether throughput that nobody used may be spent later.
    pub burst: bool,
    /// Whether nothing is offered to anybody, as in a serverless account.
    pub serverless: bool,
}

impl Default for EngineSettings {
    fn default() -> Self {
        EngineSettings {
            strict: false,
            ranges_min: 1,
            slices_max: SLICES_MAX,
            change_delay_seconds: 0,
            change_guard_percent: None,
            lenient_order_by: false,
            container_quota: None,
            partition_quota: None,
            query_steps: QuerySteps::USUAL,
            query_limits: QueryLimits::USUAL,
            feed_retention_minutes: FEED_RETENTION_MINUTES,
            resettable: false,
            throughput: ThroughputMode::Measured,
            burst: false,
            serverless: false,
        }
    }
}

/// How much work queries may make, in steps; one is a tenth of a microsecond, or some
/// tenths.
#[derive(Clone, Copy, Debug)]
pub struct QuerySteps {
    /// So much is quick.
    pub quick: u64,
    /// After so much a page ends that can.
    pub page: u64,
    /// After so much a query ends that has to give all it has in one page.
    pub whole: u64,
}

impl QuerySteps {
    /// The usual: about 2 ms, a second, and a minute or two.
    pub const USUAL: QuerySteps = QuerySteps { quick: 10_000, page: 5_000_000, whole: 500_000_000 };
}

/// How much a query looks at, at most, before it ends a page or goes another way. No
/// answer depends on any of these, only what it costs.
#[derive(Clone, Copy, Debug)]
pub struct QueryLimits {
    /// How many items a page looks at that can end before it is full.
    pub page_looks: u64,
    /// How many keys a page of a list looks at; many may be expired.
    pub list_looks: u64,
    /// How many rows a page of the change feed looks at; many may be expired, or of other
    /// partitions.
    pub feed_looks: u64,
    /// The same as long as it has found nothing: then it goes on beside the queries.
    pub feed_looks_in_vain: u64,
    /// After so many rows it asks which items there are in the partitions that are meant, and
    /// goes by these if they are no more.
    pub feed_few: usize,
    /// No more items than this are read without an index.
    pub few_items: u64,
    /// Past no more dead ones than this.
    pub few_dead: u64,
    /// Up to this many items are sorted in memory although an index has the order.
    pub sorted_items: usize,
    /// How many items of a part of the space of keys are gathered to be put in order.
    pub gathered_items: usize,
    /// How many items a filter's ranges may name, to be put in order, when a query first
    /// asks for them; and in the end.
    pub listed_items: (usize, usize),
    /// How many items of one second are read at once, to begin with.
    pub second_chunk: usize,
    /// How many items of one second are held at once.
    pub second_held: usize,
    /// As many dead entries in a row are worth to be known.
    pub dead_run: usize,
    /// How many items are counted one by one for the statistics of a container.
    pub counted_items: u64,
}

impl QueryLimits {
    /// Those that are shipped.
    pub const USUAL: QueryLimits = QueryLimits {
        page_looks: 50_000,
        list_looks: 20_000,
        feed_looks: 50_000,
        feed_looks_in_vain: 5_000_000,
        feed_few: 1_024,
        few_items: 16,
        few_dead: 64,
        sorted_items: 1_000,
        gathered_items: 4_096,
        listed_items: (1_024, 262_144),
        second_chunk: 64,
        second_held: 50_000,
        dead_run: 64,
        counted_items: 20_000,
    };

    /// So small that every way is taken with a few dozen items.
    pub const SMALL: QueryLimits = QueryLimits {
        page_looks: 60,
        list_looks: 10,
        feed_looks: 12,
        feed_looks_in_vain: 400,
        feed_few: 5,
        few_items: 6,
        few_dead: 12,
        sorted_items: 10,
        gathered_items: 8,
        listed_items: (3, 24),
        second_chunk: 3,
        second_held: 4,
        dead_run: 2,
        counted_items: 60,
    };
}
