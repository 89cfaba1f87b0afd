//! Codex's rollouts: `sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`, and those in `archived_sessions`.
//!
//! A request leaves a `token_count` with the total of the thread, which is often repeated. Newer versions write a
//! `token_usage_record` before it. So a `token_count` counts only if its total is new and does not belong to a record.
//! If a process was killed between the two, their totals differ from then on.
//!
//! A resumed thread continues in its file. A fork's file refers to the earlier history, or in older versions begins
//! with a copy of it that has new times. A copy is recognized by the id of its turn, which shows that it is older than
//! the thread.

mod limits;
mod wire;

use std::io;
use std::path::Path;

use jiff::Timestamp;
use teamster_core::Usage;

use crate::lines::{self, Line};
use crate::locations::Locations;
use crate::provider::Traits;
use crate::source::{Shared, Sink, Source, Sources, is_jsonl};
use crate::{Key, Provider, Record};
use wire::{Context, Count, Kind, Meta, Settings, Started, Tokens, Used, Wrapped};

pub(crate) const TRAITS: Traits = Traits {
    reads_on: true,
    limits: Some(limits::of_line),
    ..Traits::NONE
};

/// Folders of rollouts in the CLI's home, with their depths: year, month, day, file.
const FOLDERS: [(&str, usize); 2] = [("sessions", 4), ("archived_sessions", 4)];

/// Number of bytes that are read before the start position. A turn's first lines may be before it, with all of the
/// turn's output in between.
const WARM_UP: u64 = 1 << 20;

/// Adds all rollouts, or those of the requested session. Those of its sub-agents name it only in their content. So with a
/// start time, all files since then are added, which are few.
pub(crate) fn sources(locations: &Locations, found: &mut Sources) {
    let Some(home) = &locations.codex else {
        return;
    };
    let session = found.session.clone().filter(|_| found.since.is_none());
    let ending = session.map(|session| format!("-{session}.jsonl"));
    let is_wanted = |name: &str| {
        ending
            .as_deref()
            .is_none_or(|ending| name.ends_with(ending))
    };
    let before = found.found.len();
    for (folder, depth) in FOLDERS {
        found.walk(Provider::Codex, &home.join(folder), depth, |path| {
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.map(|name| name.strip_suffix(lines::COMPRESSED).unwrap_or(name));
            name.is_some_and(|name| {
                name.starts_with("rollout-") && is_jsonl(Path::new(name)) && is_wanted(name)
            })
        });
    }
    // The CLI compresses rollouts that were unused for a week if its feature `local_thread_store_compression` is on.
    // While such a thread is being resumed, both files exist.
    let twice = found.found.extract_if(before.., |source| {
        !is_jsonl(&source.path) && source.path.with_extension("").exists()
    });
    drop(twice.collect::<Vec<_>>());
}

/// Reads a rollout.
pub(crate) fn read(source: &Source, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut reader = Reader {
        only: source.session.as_deref(),
        ..Reader::of_file(&source.path)
    };
    if source.start > 0 {
        reader.go_on(source)?;
    }
    source.lines(sink, |line, sink| reader.line(line, sink))
}

/// State of a rollout.
#[derive(Default)]
struct Reader<'a> {
    /// The only session to read. The file of another one is skipped.
    only: Option<&'a str>,
    /// The thread in the file's name.
    named: Option<String>,
    /// The thread of the file, with the time of its first line.
    thread: Option<(String, Timestamp)>,
    /// The session of the thread. For a sub-agent it is the one that started it.
    session: Option<String>,
    subagent: bool,
    /// True if the file begins with the history of another thread.
    forked: bool,
    /// True while such a copy is being read.
    copied: bool,
    /// True if the file's version writes a record of each request.
    writes_records: bool,
    model: Option<String>,
    /// True if requests have priority, which costs more.
    fast: bool,
    directory: Option<String>,
    /// The total of the thread that was counted so far.
    counted: Option<Tokens>,
    /// The last `token_usage_record`, until its `token_count` follows.
    recorded: Option<Tokens>,
    shared_session: Shared,
    shared_model: Shared,
    shared_directory: Shared,
}

impl Reader<'_> {
    /// Creates a reader for a file. The thread in its name is used if reading does not begin at the start.
    fn of_file(path: &Path) -> Self {
        let name = path.file_stem().and_then(|name| name.to_str());
        let id = name.and_then(|name| name.get(name.len().checked_sub(36)?..));
        Self {
            named: id.map(str::to_owned),
            ..Self::default()
        }
    }

    /// Restores the state at the start position: the model and the counted total.
    fn go_on(&mut self, source: &Source) -> io::Result<()> {
        let mut before = |_| {};
        let mut nowhere = Sink::new(&mut before);
        lines::read_before(&source.path, source.start, WARM_UP, &mut |line| {
            if let Some(kind) = Kind::of(line)
                && kind != Kind::Meta
            {
                let _ = self.take(kind, line, &mut nowhere);
            }
        })
    }

    fn line(&mut self, line: Line<'_>, sink: &mut Sink<'_>) {
        let Some(kind) = Kind::of(line.bytes) else {
            return;
        };
        if self.take(kind, line.bytes, sink).is_none() {
            sink.malformed(line);
        }
    }

    /// Processes a line. Returns `None` if it is malformed.
    fn take(&mut self, kind: Kind, line: &[u8], sink: &mut Sink<'_>) -> Option<()> {
        match kind {
            Kind::Meta => {
                self.meta(&wire::parse::<Meta<'_>>(line)?);
                let other = self.only.is_some() && self.session.as_deref() != self.only;
                sink.done = other && self.thread.is_some();
            }
            Kind::Started => {
                let started = wire::parse::<Started<'_>>(line)?;
                self.turn(started.payload.turn_id.as_deref(), started.at()?);
            }
            Kind::Context => {
                let context = wire::parse::<Context<'_>>(line)?;
                let at = context.at()?;
                let context = context.payload;
                self.turn(context.turn_id.as_deref(), at);
                set(&mut self.model, context.model.as_deref());
                set(&mut self.directory, context.cwd.as_deref());
            }
            Kind::Settings => {
                let settings = wire::parse::<Settings<'_>>(line)?.payload.thread_settings;
                self.fast = settings.service_tier.as_deref() == Some("priority");
                // During a turn the context has the model. Settings apply to the next turn.
                if self.model.is_none() {
                    set(&mut self.model, settings.model.as_deref());
                }
            }
            Kind::Used => {
                let used = wire::parse::<Used<'_>>(line)?;
                let at = used.at()?;
                self.used(&used.payload, at, sink);
            }
            Kind::Count => {
                let count = wire::parse::<Count>(line)?;
                let at = count.at()?;
                self.count(&count.payload, at, sink);
            }
        }
        Some(())
    }

    fn meta(&mut self, line: &Wrapped<'_, Meta<'_>>) {
        let meta = &line.payload;
        if self.thread.is_some() {
            // The thread that this one was forked from.
            self.forked = true;
            self.copied = true;
            return;
        }
        let parent = meta.parent();
        self.subagent = parent.is_some();
        self.session = [meta.session_id.as_deref(), parent, Some(&*meta.id)]
            .into_iter()
            .find_map(|id| id.map(str::to_owned));
        self.forked = meta.forked_from_id.is_some();
        self.copied = self.forked;
        self.writes_records = meta
            .history_mode
            .as_deref()
            .is_some_and(|mode| mode != "legacy");
        set(&mut self.directory, meta.cwd.as_deref());
        self.thread = line.at().map(|at| (meta.id.clone().into_owned(), at));
    }

    /// Begins a turn, or the copy of one.
    fn turn(&mut self, turn: Option<&str>, at: Timestamp) {
        let Some((thread, began)) = &self.thread else {
            return;
        };
        if !self.forked {
            return;
        }
        let times = turn.and_then(millisecond).zip(millisecond(thread));
        self.copied = match times {
            Some((turn, thread)) => turn < thread,
            // Versions without such turn ids write the copy at once.
            None => at.duration_since(*began).as_millis() < 1000,
        };
    }

    fn used(&mut self, used: &Used<'_>, at: Timestamp, sink: &mut Sink<'_>) {
        self.counted = used.thread_token_usage;
        self.recorded = used.usage;
        let thread = used.thread_id.as_deref().or(self.thread_id());
        let foreign = self.thread_id().is_some_and(|own| thread != Some(own));
        if self.copied || foreign {
            return;
        }
        let Some(tokens) = used.usage else {
            return;
        };
        let key = used.response_id.as_deref().map(|response| {
            let turn = used.turn_id.as_deref().unwrap_or_default();
            Key::of(
                Provider::Codex,
                &[thread.unwrap_or_default(), turn, response],
            )
        });
        let session = used
            .session_id
            .as_deref()
            .or(self.session.as_deref())
            .or(thread);
        let subagent = self.subagent || session != thread;
        let session = session.map(str::to_owned);
        self.record(session, subagent, key, tokens, at, sink);
    }

    fn count(&mut self, count: &Count, at: Timestamp, sink: &mut Sink<'_>) {
        let Some(info) = &count.info else {
            return;
        };
        let (Some(total), last) = (info.total_token_usage, info.last_token_usage) else {
            return;
        };
        let before = self.counted.replace(total);
        if let (Some(recorded), Some(last)) = (&self.recorded, &last)
            && recorded.same(last)
        {
            self.recorded = None;
            return;
        }
        // The first total in a fork's file may be that of the parent thread.
        let inherited = before.is_none() && self.forked && self.writes_records;
        if self.copied || inherited || before.is_some_and(|before| before.same(&total)) {
            return;
        }
        let Some(tokens) = last.or_else(|| total.minus(&before?)) else {
            return;
        };
        let thread = self.thread_id().unwrap_or_default();
        let key = Key::of(Provider::Codex, &[thread, &total.text(), &tokens.text()]);
        let session = self.session.clone().or_else(|| self.named.clone());
        self.record(session, self.subagent, Some(key), tokens, at, sink);
    }

    fn record(
        &mut self,
        session: Option<String>,
        subagent: bool,
        key: Option<Key>,
        tokens: Tokens,
        at: Timestamp,
        sink: &mut Sink<'_>,
    ) {
        let usage = tokens.usage();
        if usage == Usage::default() {
            return;
        }
        let session = session.unwrap_or_default();
        let mut record = Record::new(Provider::Codex, self.shared_session.of(&session), at);
        record.key = key;
        record.usage = usage;
        record.subagent = subagent;
        record.fast = self.fast;
        record.model = self
            .model
            .as_deref()
            .map(|model| self.shared_model.of(model));
        let directory = self.directory.as_deref();
        record.directory = directory.map(|directory| self.shared_directory.of(directory));
        sink.record(record);
    }

    /// Returns the thread of the file.
    fn thread_id(&self) -> Option<&str> {
        let thread = self.thread.as_ref().map(|(id, _)| id.as_str());
        thread.or(self.named.as_deref())
    }
}

fn set(value: &mut Option<String>, new: Option<&str>) {
    if let Some(new) = new
        && value.as_deref() != Some(new)
    {
        *value = Some(new.to_owned());
    }
}

/// Returns the time of a UUID of version 7, in milliseconds since 1970-01-01 UTC.
fn millisecond(id: &str) -> Option<u64> {
    let id = id.as_bytes();
    if id.len() != 36 || id[8] != b'-' || id[13] != b'-' || id[14] != b'7' {
        return None;
    }
    let mut digits = id[..8].iter().chain(&id[9..13]);
    digits.try_fold(0, |time, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(time << 4 | u64::from(digit))
    })
}

#[cfg(test)]
mod tests;
