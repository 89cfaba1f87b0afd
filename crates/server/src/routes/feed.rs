//! `/v1/events`: the stream of state changes for the page.

use std::sync::Arc;

use async_stream::try_stream;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::routing::get;
use bytes::{Bytes, BytesMut};
use schemars::SchemaGenerator;
use teamster_api::{Change, RunSummary};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::{Answer, App};
use crate::events::{HEARTBEAT, StreamFormat};
use crate::feed::{Agents, Changes, changes, next};
use crate::operation::Operation;
use crate::schema::event;
use crate::state::Shared;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(Method::GET, "/v1/events", "watch", get(watch))
            .about(
                "Watch runs, requests and agents",
                "Streams state, not history: a snapshot, then its changes, at most twice a second. A client that \
                reconnects gets a new snapshot. The stream ends only with the server.",
            )
            .reply(
                StatusCode::OK,
                "The messages, in the format of `Accept`.",
                vec![
                    ("application/x-ndjson", SchemaGenerator::subschema_for::<Change>),
                    ("text/event-stream", event::<Change>),
                ],
            ),
    ]
}

async fn watch(State(shared): App, headers: HeaderMap) -> Answer {
    let format = StreamFormat::from_accept(&headers);
    let (runs, changes) = changes(&*shared.runs).await?;
    let agents = shared.agents.watch().await?;
    let messages = messages(shared, runs, changes, agents, format);
    Ok(format.response(Body::from_stream(messages)))
}

fn messages(
    shared: Arc<Shared>,
    runs: Vec<Arc<RunSummary>>,
    mut changes: Changes,
    mut watched: watch::Receiver<Agents>,
    format: StreamFormat,
) -> impl futures_core::Stream<Item = Result<Bytes, std::io::Error>> {
    try_stream! {
        let mut beats = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut out = BytesMut::new();
        format.begin(&mut out);
        let mut agents = watched.borrow_and_update().clone();
        push(format, &mut out, &Change::Snapshot { runs, agents: agents.clone() })?;
        loop {
            let change = tokio::select! {
                biased;
                () = shared.ending.cancelled() => return,
                change = next(&mut changes) => match change {
                    Some(change) => change,
                    None => return,
                },
                changed = watched.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let now = watched.borrow_and_update().clone();
                    let before = std::mem::replace(&mut agents, now.clone());
                    match now.filter(|_| agents != before) {
                        Some(agents) => Ok(Change::Agents { agents }),
                        None => continue,
                    }
                }
                // What came together is sent together.
                () = std::future::ready(()), if !out.is_empty() => {
                    yield out.split().freeze();
                    continue;
                }
                _ = beats.tick() => {
                    format.heartbeat(&mut out);
                    continue;
                }
            };
            push(format, &mut out, &change.map_err(std::io::Error::other)?)?;
        }
    }
}

fn push(format: StreamFormat, out: &mut BytesMut, change: &Change) -> std::io::Result<()> {
    format.entry(out, None, &serde_json::to_vec(change)?);
    Ok(())
}
