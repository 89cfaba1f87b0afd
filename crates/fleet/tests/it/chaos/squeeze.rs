//! Limits of the streams of logs and files that become small for a while.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::stream::{Config, Info};
use teamster_testkit::stand_in::Chance;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::client;

/// Age of the messages of logs that are kept while it is short.
const SHORT: Duration = Duration::from_secs(2);
/// Time in which a request must be answered.
const ANSWER: Duration = Duration::from_secs(2);
/// Pause before a request is repeated.
const PAUSE: Duration = Duration::from_millis(200);

/// How often something was done.
pub(crate) type Counts = BTreeMap<&'static str, usize>;

/// What lowers the limits, until it is ended.
pub(crate) struct Squeeze {
    over: watch::Sender<bool>,
    task: JoinHandle<Counts>,
}

impl Squeeze {
    /// Begins. `[ages, limits]` are done.
    pub(crate) fn start(url: &str, seed: u64, kinds: [bool; 2]) -> Self {
        let (over, is_over) = watch::channel(false);
        let url = url.to_owned();
        let task = tokio::spawn(async move { squeeze(&url, seed, kinds, is_over).await });
        Self { over, task }
    }

    /// Gives the streams their limits back.
    pub(crate) async fn end(self) -> Counts {
        self.over.send_replace(true);
        self.task.await.unwrap()
    }
}

async fn squeeze(
    url: &str,
    seed: u64,
    [ages, limits]: [bool; 2],
    mut is_over: watch::Receiver<bool>,
) -> Counts {
    let mut counts = Counts::new();
    let mut chance = Chance::of(seed, 3, 0);
    // Servers are killed all the time.
    let context = ContextBuilder::new().timeout(ANSWER);
    let jetstream = context.build(client(url).await);
    let mut kinds = Vec::new();
    if ages {
        kinds.push("age of logs shortened");
    }
    if limits {
        kinds.extend(["limit of logs lowered", "limit of files lowered"]);
    }
    let mut wait = async |between| {
        let time = Duration::from_millis(chance.between(between));
        let _ = timeout(time, is_over.wait_for(|is_over| *is_over)).await;
        *is_over.borrow()
    };
    for number in 0.. {
        if kinds.is_empty() || wait([1_000, 5_000]).await {
            break;
        }
        let kind = kinds[number % kinds.len()];
        let name = if kind.contains("files") {
            "TM_FILE"
        } else {
            "TM_LOG"
        };
        let before = loop {
            match look_at(&jetstream, name).await {
                Some(before) => break before,
                None => sleep(PAUSE).await,
            }
        };
        let mut small = before.config.clone();
        match kind {
            "age of logs shortened" => {
                (small.max_age, small.duplicate_window) = (SHORT, SHORT);
            }
            "limit of logs lowered" => {
                small.max_bytes = i64::try_from(before.state.bytes / 2).unwrap().max(1 << 14);
            }
            _ => small.max_bytes = i64::try_from(before.state.bytes).unwrap() + 1,
        }
        set(&jetstream, &small).await;
        *counts.entry(kind).or_default() += 1;
        wait([3_000, 6_000]).await;
        set(&jetstream, &before.config).await;
        if name == "TM_LOG"
            && let Some(after) = look_at(&jetstream, name).await
        {
            // A server that is behind may have answered.
            let gone = (after.state.first_sequence).saturating_sub(before.state.first_sequence);
            *counts.entry("messages of logs gone").or_default() += usize::try_from(gone).unwrap();
        }
    }
    counts
}

async fn look_at(jetstream: &Context, name: &str) -> Option<Info> {
    let stream = jetstream.get_stream(name).await.ok()?;
    Some(stream.cached_info().clone())
}

/// Sets the limits of a stream, once the servers can.
async fn set(jetstream: &Context, config: &Config) {
    while jetstream.update_stream(config).await.is_err() {
        sleep(PAUSE).await;
    }
}
