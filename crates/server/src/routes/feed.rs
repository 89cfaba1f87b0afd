//! `/v1/events`: the stream of state changes for the page.

use std::sync::Arc;

use async_stream::try_stream;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::routing::get;
use bytes::{Bytes, BytesMut};
use schemars::SchemaGenerator;
use teamster_api::Change;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::{Answer, App};
use crate::events::{HEARTBEAT, StreamFormat};
use crate::feed::{Feed, FeedState};
use crate::openapi::event;
use crate::operation::Operation;
use crate::server::Shared;

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
    let state = Feed::watch(&shared).await?;
    Ok(format.response(Body::from_stream(messages(shared, state, format))))
}

fn messages(
    shared: Arc<Shared>,
    mut state: watch::Receiver<Arc<FeedState>>,
    format: StreamFormat,
) -> impl futures_core::Stream<Item = Result<Bytes, std::io::Error>> {
    try_stream! {
        let mut beats = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut out = BytesMut::new();
        format.begin(&mut out);
        let mut known = state.borrow_and_update().clone();
        push(format, &mut out, &known.snapshot())?;
        yield out.split().freeze();
        loop {
            let changed = tokio::select! {
                biased;
                () = shared.ending.cancelled() => return,
                changed = state.changed() => Some(changed.is_ok()),
                _ = beats.tick() => None,
            };
            match changed {
                Some(true) => {
                    let now = state.borrow_and_update().clone();
                    for change in now.changes_since(&known) {
                        push(format, &mut out, &change)?;
                    }
                    known = now;
                }
                Some(false) => return,
                None => format.heartbeat(&mut out),
            }
            if !out.is_empty() {
                yield out.split().freeze();
            }
        }
    }
}

fn push(format: StreamFormat, out: &mut BytesMut, change: &Change) -> std::io::Result<()> {
    format.entry(out, None, &serde_json::to_vec(change)?);
    Ok(())
}
