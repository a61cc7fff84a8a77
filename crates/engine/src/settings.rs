//! What can be set.

/// What can be set.
#[derive(Clone, Copy, Debug)]
pub struct EngineSettings {
    /// Refuse what the strictest reading of the service refuses.
    pub strict: bool,
    /// How many buckets a new container gets.
    pub slices: usize,
    /// How long a change of a container's default waits before it counts.
    pub change_delay_seconds: u64,
    /// A change that would expire more than this part of a container's items
    /// must be confirmed.
    pub change_guard_percent: Option<f64>,
    /// Sort in memory where the service refuses to sort without an index.
    pub lenient_order_by: bool,
    /// How much work queries may make.
    pub query_steps: QuerySteps,
    /// Whether one request may remove everything: what is here is for tests.
    pub resettable: bool,
}

impl Default for EngineSettings {
    fn default() -> Self {
        EngineSettings {
            strict: false,
            slices: 1,
            change_delay_seconds: 0,
            change_guard_percent: None,
            lenient_order_by: false,
            query_steps: QuerySteps::USUAL,
            resettable: false,
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
