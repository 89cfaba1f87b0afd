//! The log of a run over HTTP: a stream of server-sent events or lines, or a page of JSON.

use std::sync::Arc;
use std::time::Duration;

use async_stream::stream;
use axum::body::Body;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, Response, StatusCode};
use axum::response::IntoResponse;
use bytes::{BufMut, Bytes, BytesMut};
use schemars::JsonSchema;
use serde::Deserialize;
use teamster_api::{LogLine, LogStream, ProblemCode, ServiceError, ViewState};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout, timeout_at};

use crate::ApiError;
use crate::fields::{Seconds, number, split_unquoted};
use crate::state::Shared;

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
/// The time for which a response waits for an entry that exists before it asks for the state of the run.
const AT_ONCE: Duration = Duration::from_millis(50);
/// The time for which a response waits for the state of its run, whose runner may not answer.
const STATE_LIMIT: Duration = Duration::from_secs(1);
/// The time limit for an entry that exists.
const READ_LIMIT: Duration = Duration::from_secs(10);

/// A query of log entries.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// Only entries with a greater `seq`. The header `Last-Event-ID` takes precedence.
    pub(crate) after: Option<u64>,
    /// Respond with one page of JSON as soon as an entry exists, or after this many seconds. More than 300 count as 300.
    pub(crate) wait: Option<Seconds>,
}

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
        if quality(headers, "text", "event-stream") > quality(headers, "application", "x-ndjson") {
            Self::Sse
        } else {
            Self::Lines
        }
    }

    fn media(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Lines => "application/x-ndjson",
        }
    }

    /// Creates the response for a stream.
    pub(crate) fn response(self, body: Body) -> Response<Body> {
        // nginx buffers responses without this header.
        let buffering = HeaderName::from_static("x-accel-buffering");
        ([(CONTENT_TYPE, self.media()), (buffering, "no")], body).into_response()
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

/// Returns the weight of a media type in the `Accept` header (RFC 9110, 12.5.1), in thousandths, and the rank of the
/// range that has it: the most specific one counts. 0 if the type is not accepted.
pub(crate) fn quality(headers: &HeaderMap, r#type: &str, subtype: &str) -> (u16, u8) {
    let values = headers.get_all(ACCEPT).iter();
    let ranges = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| split_unquoted(value, ','));
    let matching = ranges.filter_map(|range| {
        let mut parts = split_unquoted(range, ';').map(str::trim);
        let (main, sub) = parts.next()?.split_once('/')?;
        let rank = match (main, sub) {
            ("*", "*") => 1,
            (main, "*") if main.eq_ignore_ascii_case(r#type) => 2,
            (main, sub)
                if main.eq_ignore_ascii_case(r#type) && sub.eq_ignore_ascii_case(subtype) =>
            {
                3
            }
            _ => return None,
        };
        let weight = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
        });
        Some((rank, thousandths(weight.unwrap_or("1"))))
    });
    let best = matching.max_by_key(|(rank, _)| *rank);
    match best {
        Some((rank, weight)) if weight > 0 => (weight, rank),
        _ => (0, 0),
    }
}

/// Reads a weight, such as `0.5`, in thousandths. What is no weight counts as 1.
fn thousandths(weight: &str) -> u16 {
    let (whole, fraction) = weight.split_once('.').unwrap_or((weight, ""));
    let digits = format!("{fraction:0<3}");
    let digits = digits.get(..3).and_then(|digits| digits.parse().ok());
    match (whole, digits) {
        ("0", Some(thousandths)) => thousandths,
        _ => 1000,
    }
}

/// Returns the number of the entry after which the client continues.
pub(crate) fn after(headers: &HeaderMap, query: EventsQuery) -> Result<u64, ApiError> {
    // A browser that reconnects repeats its first query and sends the number of its last entry in this header.
    let Some(last) = headers.get("last-event-id") else {
        return Ok(query.after.unwrap_or(0));
    };
    match last.to_str().map(str::trim) {
        Ok("") => Ok(query.after.unwrap_or(0)),
        last => (last.ok().and_then(number)).ok_or_else(|| {
            let detail = "Last-Event-ID: expected the number of an entry";
            ApiError::new(ProblemCode::InvalidParams, detail)
        }),
    }
}

/// Returns the log of the run with exactly this id, in the requested format.
pub(crate) async fn respond(
    shared: Arc<Shared>,
    id: &str,
    headers: &HeaderMap,
    query: EventsQuery,
) -> Result<Response<Body>, ApiError> {
    let after = after(headers, query)?;
    if let Some(wait) = query.wait {
        return page(&shared, id, after, wait.at_most(LONGEST_WAIT)).await;
    }
    let format = StreamFormat::from_accept(headers);
    let mut log = shared.run(id).follow(after);
    // An error before the first entry is the response.
    let first = tokio::select! {
        biased;
        first = log.next() => Some(first),
        newest = async {
            sleep(AT_ONCE).await;
            newest(&shared, id).await
        } => match newest {
            Some(newest) if newest.is_last && newest.seq <= after => Some(None),
            Some(_) => None,
            None => timeout(STATE_LIMIT, log.next()).await.ok(),
        },
    };
    let first = match first {
        Some(Some(first)) => Some(first?),
        // A browser does not reconnect after this status.
        Some(None) => {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        None => None,
    };
    Ok(format.response(Body::from_stream(entries(shared, first, log, format))))
}

/// The newest entry of a log.
struct Newest {
    seq: u64,
    /// The run has ended, so no entry follows.
    is_last: bool,
}

/// Returns the newest entry of a run's log. `None` if the state of the run is not known in time, or is an error: then the
/// log has one too, or the runner does not answer.
async fn newest(shared: &Shared, id: &str) -> Option<Newest> {
    let run = shared.run(id);
    // A task, so that the service notes a runner that does not answer.
    let asked = tokio::spawn(async move { run.outline().await });
    let view = timeout(STATE_LIMIT, asked).await.ok()?.ok()?.ok()?;
    Some(Newest {
        seq: view.summary.seq,
        is_last: view.summary.state == ViewState::Ended,
    })
}

/// Streams entries as they are written. When the server ends, the stream ends without `end`, so clients reconnect.
fn entries(
    shared: Arc<Shared>,
    mut first: Option<LogLine>,
    mut log: LogStream,
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
                next = next(&mut first, &mut log) => next,
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
                Some(Ok(line)) => {
                    beats.reset();
                    format.entry(&mut out, Some(line.seq()), line.json());
                    if out.len() >= PIECE {
                        yield Ok(out.split().freeze());
                        // Reading a long log never waits, so let other tasks run.
                        tokio::task::yield_now().await;
                    }
                }
                None => {
                    format.end(&mut out);
                    yield Ok(out.split().freeze());
                    return;
                }
                Some(Err(error)) => {
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

/// Returns the entry that was read already, else the next one. Cancel-safe.
async fn next(
    first: &mut Option<LogLine>,
    log: &mut LogStream,
) -> Option<Result<LogLine, ServiceError>> {
    match first.take() {
        Some(line) => Some(Ok(line)),
        None => log.next().await,
    }
}

/// Returns one page: the entries that exist, or the first one that is written within `wait`.
async fn page(
    shared: &Shared,
    id: &str,
    after: u64,
    wait: Duration,
) -> Result<Response<Body>, ApiError> {
    let mut log = shared.run(id).follow(after);
    let newest = newest(shared, id).await;
    // What is there is read even without a wait.
    let wait = newest.as_ref().map_or(wait.max(STATE_LIMIT), |_| wait);
    let newest = newest.map_or(after, |newest| newest.seq);
    let until = Instant::now() + wait;
    let mut out = BytesMut::from(&b"{\"entries\":["[..]);
    let mut next = after;
    let mut ended = false;
    let mut is_empty = true;
    loop {
        let line = if next < newest || is_empty {
            let until = if next < newest {
                Instant::now() + READ_LIMIT
            } else {
                until
            };
            tokio::select! {
                biased;
                line = timeout_at(until, log.next()) => line.ok(),
                () = shared.ending.cancelled() => None,
            }
        } else {
            // Only entries that exist now.
            tokio::select! {
                biased;
                line = log.next() => Some(line),
                () = std::future::ready(()) => None,
            }
        };
        match line {
            Some(Some(line)) => {
                let line = line?;
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
    Ok(([(CONTENT_TYPE, "application/json")], out.freeze()).into_response())
}

fn push(out: &mut BytesMut, line: &LogLine, is_empty: &mut bool) {
    if !std::mem::take(is_empty) {
        out.put_u8(b',');
    }
    out.put(line.json());
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_format_is_the_accepted_one_of_the_greatest_weight() {
        for (accept, format) in [
            (&[][..], StreamFormat::Lines),
            (&["text/event-stream"], StreamFormat::Sse),
            (&["TEXT/Event-Stream;charset=utf-8"], StreamFormat::Sse),
            (&["*/*"], StreamFormat::Lines),
            (&["text/*"], StreamFormat::Sse),
            (&["text/event-stream;q=0, */*"], StreamFormat::Lines),
            (&["text/event-stream;q=0.0"], StreamFormat::Lines),
            (
                &["application/x-ndjson;q=0.5", "text/event-stream; Q=0.6"],
                StreamFormat::Sse,
            ),
            (
                &["application/x-ndjson, text/event-stream;q=0.9"],
                StreamFormat::Lines,
            ),
            (
                &["application/x-ndjson, text/event-stream"],
                StreamFormat::Lines,
            ),
            (&["text/event-stream, */*"], StreamFormat::Sse),
            (
                &["application/json;x=\"a, text/event-stream\""],
                StreamFormat::Lines,
            ),
        ] {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(ACCEPT, HeaderValue::from_str(value).unwrap());
            }
            assert_eq!(StreamFormat::from_accept(&headers), format, "{accept:?}");
        }
    }
}
