//! The log of a run over HTTP: a stream of server-sent events or lines, or a page of JSON.

use std::sync::Arc;
use std::time::Duration;

use async_stream::stream;
use axum::body::Body;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use bytes::{BufMut, Bytes, BytesMut};
use schemars::JsonSchema;
use serde::Deserialize;
use teamster_runner::client::Follow;
use teamster_runner::{LogLine, RunFolder};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout_at};

use crate::server::Shared;
use crate::{Problem, ProblemCode};

/// The interval of heartbeats in an idle stream. They keep proxies from closing it.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);
/// The delay before a browser reconnects, in milliseconds.
pub(crate) const RETRY_MS: u64 = 1000;
/// The buffered bytes after which a stream is flushed.
const PIECE: usize = 64 << 10;
/// The size of a page in bytes. A page has at least one entry.
const PAGE: usize = 1 << 20;
/// The longest wait for a page.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// A query of log entries.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// Only entries with a greater `seq`. The header `Last-Event-ID` takes precedence.
    pub(crate) after: Option<u64>,
    /// Respond with one page of JSON as soon as an entry exists, or after this many seconds, at most 300.
    pub(crate) wait: Option<f64>,
}

/// The format of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamFormat {
    /// `text/event-stream`.
    Sse,
    /// `application/x-ndjson`.
    Lines,
}

impl StreamFormat {
    /// Returns the format that the `Accept` header requests; lines by default.
    pub(crate) fn from_accept(headers: &HeaderMap) -> Self {
        let accepts = headers.get_all(ACCEPT).iter();
        let mut accepts = accepts.filter_map(|value| value.to_str().ok());
        if accepts.any(|value| value.contains("text/event-stream")) {
            Self::Sse
        } else {
            Self::Lines
        }
    }

    fn media(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Sse => "text/event-stream",
            Self::Lines => "application/x-ndjson",
        })
    }

    /// Creates the response for a stream.
    pub(crate) fn response(self, body: Body) -> Response<Body> {
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, self.media());
        // nginx buffers responses without this header.
        let buffering = HeaderName::from_static("x-accel-buffering");
        headers.insert(buffering, HeaderValue::from_static("no"));
        response
    }

    /// Writes the beginning of a stream.
    pub(crate) fn begin(self, out: &mut BytesMut) {
        if self == Self::Sse {
            out.put(format!("retry: {RETRY_MS}\n\n").as_bytes());
        }
    }

    /// Writes an entry, with its number if it has one.
    pub(crate) fn entry(self, out: &mut BytesMut, seq: Option<u64>, json: &[u8]) {
        if self == Self::Sse {
            if let Some(seq) = seq {
                out.put(format!("id: {seq}\n").as_bytes());
            }
            out.put(&b"data: "[..]);
        }
        out.put(json);
        out.put(match self {
            Self::Sse => &b"\n\n"[..],
            Self::Lines => &b"\n"[..],
        });
    }

    /// Writes a heartbeat: a comment of server-sent events. Line streams have none.
    pub(crate) fn heartbeat(self, out: &mut BytesMut) {
        if self == Self::Sse {
            out.put(&b": \n\n"[..]);
        }
    }

    /// Writes the end of a log. Browsers ignore events without data.
    fn end(self, out: &mut BytesMut) {
        if self == Self::Sse {
            out.put(&b"event: end\ndata: {}\n\n"[..]);
        }
    }
}

/// Returns the number of the entry after which the client continues.
pub(crate) fn after(headers: &HeaderMap, query: EventsQuery) -> Result<u64, Problem> {
    // A browser that reconnects repeats its first query and sends the number of its last entry in this header.
    let Some(last) = headers.get("last-event-id") else {
        return Ok(query.after.unwrap_or(0));
    };
    match last.to_str().map(str::trim) {
        Ok("") => Ok(query.after.unwrap_or(0)),
        last => (last.ok().and_then(|number| number.parse().ok())).ok_or_else(|| {
            let detail = "Last-Event-ID: expected the number of an entry";
            Problem::new(ProblemCode::InvalidParams, detail)
        }),
    }
}

/// Returns the log of a run in the requested format.
pub(crate) async fn respond(
    shared: Arc<Shared>,
    run: RunFolder,
    headers: &HeaderMap,
    query: EventsQuery,
) -> Result<Response<Body>, Problem> {
    let after = after(headers, query)?;
    if let Some(wait) = query.wait {
        let wait = Duration::try_from_secs_f64(wait).map_err(|_| {
            Problem::new(
                ProblemCode::InvalidParams,
                "wait: expected a number of seconds",
            )
        })?;
        return page(&shared, run, after, wait.min(LONGEST_WAIT)).await;
    }
    let format = StreamFormat::from_accept(headers);
    let last = {
        let run = run.clone();
        crate::index::blocking(move || Ok(run.last_line()?)).await?
    };
    if last.is_some_and(|line| line.is_end() && line.seq() <= after) {
        // A browser does not reconnect after this status.
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response);
    }
    let follow = Follow::new(run, after)?;
    Ok(format.response(Body::from_stream(entries(shared, follow, format))))
}

/// Streams entries as they are written. When the server ends, the stream ends without `end`, so clients reconnect.
fn entries(
    shared: Arc<Shared>,
    mut follow: Follow,
    format: StreamFormat,
) -> impl futures_core::Stream<Item = Result<Bytes, std::io::Error>> {
    stream! {
        let mut beats = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut out = BytesMut::new();
        format.begin(&mut out);
        loop {
            let next = tokio::select! {
                biased;
                next = follow.next() => next,
                () = std::future::ready(()), if !out.is_empty() => {
                    yield Ok(out.split().freeze());
                    continue;
                }
                () = shared.ending.cancelled() => return,
                _ = beats.tick() => {
                    format.heartbeat(&mut out);
                    continue;
                }
            };
            match next {
                Ok(Some(line)) => {
                    beats.reset();
                    format.entry(&mut out, Some(line.seq()), line.json());
                    if out.len() >= PIECE {
                        yield Ok(out.split().freeze());
                        // Reading a long log never waits, so let other tasks run.
                        tokio::task::yield_now().await;
                    }
                }
                Ok(None) => {
                    format.end(&mut out);
                    yield Ok(out.split().freeze());
                    return;
                }
                Err(error) => {
                    if !out.is_empty() {
                        yield Ok(out.split().freeze());
                    }
                    // The error breaks the connection, so the client does not mistake it for the end.
                    yield Err(std::io::Error::other(error));
                    return;
                }
            }
        }
    }
}

/// Returns one page: the entries that exist, or the first one that is written within `wait`.
async fn page(
    shared: &Shared,
    run: RunFolder,
    after: u64,
    wait: Duration,
) -> Result<Response<Body>, Problem> {
    let mut follow = Follow::new(run, after)?;
    let until = Instant::now() + wait;
    let mut out = BytesMut::from(&b"{\"entries\":["[..]);
    let mut next = after;
    let mut ended = false;
    let mut is_empty = true;
    loop {
        let line = if is_empty {
            tokio::select! {
                biased;
                line = timeout_at(until, follow.next()) => line.ok().transpose()?,
                () = shared.ending.cancelled() => None,
            }
        } else {
            // Only entries that exist now.
            tokio::select! {
                biased;
                line = follow.next() => Some(line?),
                () = std::future::ready(()) => None,
            }
        };
        match line {
            Some(Some(line)) => {
                push(&mut out, &line, &mut is_empty);
                next = line.seq();
                ended = line.is_end();
            }
            Some(None) => ended = true,
            None => break,
        }
        if ended || out.len() >= PAGE {
            break;
        }
    }
    out.put(format!("],\"next\":{next},\"ended\":{ended}}}").as_bytes());
    let mut response = Response::new(Body::from(out.freeze()));
    let media = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, media);
    Ok(response)
}

fn push(out: &mut BytesMut, line: &LogLine, is_empty: &mut bool) {
    if !std::mem::take(is_empty) {
        out.put_u8(b',');
    }
    out.put(line.json());
}
