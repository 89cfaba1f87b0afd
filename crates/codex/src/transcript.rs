//! The CLI's session files.
//!
//! Every session has a file `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl` in the CLI's home. A resumed run appends
//! to it. The file is only read: its end before a run, and new lines during the run. Each request to the model leaves
//! lines with the total so far.
//!
//! A sub-agent is a session with a file of its own. Its usage records name the main agent's session, even if another
//! agent started it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use teamster_core::provider::{OtherRecordFiles, RecordFiles, is_uuid};
use teamster_core::{ExecuteParams, Usage, time};

use crate::totals::{Baseline, Totals};
use crate::wire::Object;

/// Size of the first read at the end of a file, in bytes.
const FIRST_TAIL: u64 = 64 << 10;
/// Size of the largest read at the end of a file, in bytes. A line has up to some 50 KB, more with images.
const LARGEST_TAIL: u64 = 16 << 20;
/// Texts in the lines that have figures.
const FIGURES: &[&str] = &["\"token_usage_record\"", "\"token_count\""];
/// Texts in the lines that are read during a run: those with figures, and those with the model of a turn.
const RECORDED: &[&str] = &[
    "\"token_usage_record\"",
    "\"token_count\"",
    "\"turn_context\"",
];
/// Bytes at the beginning of a line that contain its type.
const HEAD: usize = 256;

/// Totals of a session before a run. They differ if a turn broke off: its requests have records, and no event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Before {
    /// The total from which the totals that the CLI prints continue: that of the last event.
    pub(crate) printed: Baseline,
    /// The total of the last record.
    pub(crate) recorded: Baseline,
}

impl Before {
    /// The totals of a session of which nothing is known.
    pub(crate) const UNKNOWN: Self = Self {
        printed: Baseline::Unknown,
        recorded: Baseline::Unknown,
    };

    /// Returns the totals of the resumed or forked session before the run.
    pub(crate) fn of(params: &ExecuteParams) -> Self {
        let totals = || {
            let id = params.session_id.as_deref()?.to_ascii_lowercase();
            let file = find(&home(params)?.join("sessions"), &id)?;
            last_totals(&file)
        };
        totals().unwrap_or(Self::UNKNOWN)
    }
}

/// Returns the CLI's home: `CODEX_HOME`, or `.codex` in the user's home.
pub(crate) fn home(params: &ExecuteParams) -> Option<PathBuf> {
    params.cli_folder("CODEX_HOME", ".codex")
}

/// Finds the file of a session.
fn find(sessions: &Path, id: &str) -> Option<PathBuf> {
    let ending = format!("-{id}.jsonl");
    folders(id)?.into_iter().find_map(|folder| {
        let directory = sessions.join(folder);
        fs::read_dir(directory).ok()?.flatten().find_map(|entry| {
            let name = entry.file_name();
            let name = name.to_str()?;
            (name.starts_with("rollout-") && name.ends_with(&ending)).then(|| entry.path())
        })
    })
}

/// Returns candidate folders of a session's file. The id contains the start time; the CLI names the folder after the
/// local day, which may be the day before or after.
fn folders(id: &str) -> Option<[String; 3]> {
    let day = day_of(id)?;
    Some([day, day.checked_sub(1)?, day + 1].map(folder_of))
}

/// Returns the folder of a day, in days since 1970-01-01.
fn folder_of(day: u64) -> String {
    let (year, month, day) = time::date_of_day(day);
    format!("{year:04}/{month:02}/{day:02}")
}

/// Returns the files of a session, and of its sub-agents in a run that began on this day. The engine reads them while
/// the CLI writes them.
pub(crate) fn files(home: &Path, id: &str, begun: Option<u64>) -> Option<RecordFiles> {
    let id = id.to_ascii_lowercase();
    let paths = folders(&id)?.map(|folder| format!("{folder}/rollout-*-{id}.jsonl"));
    let mut files = RecordFiles::new(home.join("sessions"), paths.into(), RECORDED);
    files.others = begun.map(|day| OtherRecordFiles {
        paths: (day.saturating_sub(1)..=day + 2)
            .map(|day| format!("{}/rollout-*.jsonl", folder_of(day)))
            .collect(),
        containing: vec![
            "\"token_usage_record\"".to_owned(),
            format!("\"session_id\":\"{id}\""),
        ],
    });
    Some(files)
}

/// Returns the current day, in days since 1970-01-01.
pub(crate) fn today() -> Option<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(since.as_secs() / 86_400)
}

/// Returns the day on which an id was made, in days since 1970-01-01. Only UUIDs of version 7 contain it.
fn day_of(id: &str) -> Option<u64> {
    if !is_uuid(id) || id.as_bytes()[14] != b'7' {
        return None;
    }
    let (high, low) = (&id[..8], &id[9..13]);
    let ms = u64::from_str_radix(high, 16).ok()? << 16 | u64::from_str_radix(low, 16).ok()?;
    Some(ms / 86_400_000)
}

/// Returns the last totals in a session's file. A file without totals is of a session that has used nothing, as far as
/// the CLI knows. `None` if the file cannot be read.
fn last_totals(path: &Path) -> Option<Before> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut size = FIRST_TAIL;
    loop {
        let start = length.saturating_sub(size);
        file.seek(SeekFrom::Start(start)).ok()?;
        let mut tail = Vec::new();
        (&mut file).take(size).read_to_end(&mut tail).ok()?;
        let all = || tail.rsplit(|b| *b == b'\n').filter_map(Figures::in_line);
        let last = |is_record: bool| {
            let mut found = all().filter(|figures| figures.is_record == is_record);
            found.next().map(|figures| Baseline::Known(figures.total))
        };
        let (event, record) = (last(false), last(true));
        // Before an event is the record of the same request, in versions that have records. It may be before the tail, unless
        // a whole request is in it.
        let has_request = || {
            let mut events = all().filter(|figures| !figures.is_record);
            let last = events.next().map(|figures| figures.total);
            events.any(|figures| Some(figures.total) != last)
        };
        let has_both = event.is_some() && (record.is_some() || has_request());
        if has_both || start == 0 || size >= LARGEST_TAIL {
            let none = if start == 0 {
                Baseline::default()
            } else {
                Baseline::Unknown
            };
            return Some(Before {
                printed: event.unwrap_or(none),
                recorded: record.or(event).unwrap_or(none),
            });
        }
        size *= 4;
    }
}

/// Token usage in a line: a usage record, or an event that reports usage.
struct Figures {
    /// True for a usage record.
    is_record: bool,
    /// The thread that used them and the session that it works for, if the line names them.
    thread: Option<(String, String)>,
    /// Total of the thread.
    total: Totals,
    /// Usage of the last request.
    last: Option<Totals>,
}

impl Figures {
    fn in_line(line: &[u8]) -> Option<Self> {
        let head = String::from_utf8_lossy(&line[..line.len().min(HEAD)]);
        if !FIGURES.iter().any(|kind| head.contains(kind)) {
            return None;
        }
        let text = String::from_utf8_lossy(line);
        let line = Object::parse(&text)?;
        let payload = line.object("payload")?;
        let mut thread = None;
        let kind = line.text("type")?;
        let is_record = kind == "token_usage_record";
        let (total, last) = match &*kind {
            "token_usage_record" => {
                thread = (payload.text("thread_id"))
                    .zip(payload.text("session_id"))
                    .map(|(thread, session)| (thread.into_owned(), session.into_owned()));
                (
                    payload.object("thread_token_usage")?,
                    payload.object("usage"),
                )
            }
            "event_msg" => {
                let info = payload.object("info")?;
                (
                    info.object("total_token_usage")?,
                    info.object("last_token_usage"),
                )
            }
            _ => return None,
        };
        Some(Self {
            is_record,
            thread,
            total: Totals::of(&total),
            last: last.map(|last| Totals::of(&last)),
        })
    }
}

/// Usage of a run, from the new lines in the files of its session and sub-agents.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// The session's id, once it is known.
    session: Option<String>,
    /// The total of the session before the run, by its records.
    before: Baseline,
    /// True once a record of the session was read. The totals of events are others if an earlier turn broke off.
    has_records: bool,
    total: Option<Totals>,
    /// The model of the last turn, which the CLI does not print.
    pub(crate) model: Option<String>,
    /// Sum of the run's requests: the only usage known if `before` is unknown.
    requests: Option<Totals>,
    /// The last total of each sub-agent.
    sub_agents: BTreeMap<String, Totals>,
    /// Sum of the requests of all sub-agents.
    by_sub_agents: Option<Totals>,
}

impl Recorded {
    pub(crate) fn new(before: Baseline) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }

    /// Sets the session's id, which distinguishes the main agent from sub-agents.
    pub(crate) fn session_known(&mut self, id: &str) {
        self.session = Some(id.to_ascii_lowercase());
    }

    /// Handles a line. Returns the run's usage so far if it has changed; totals are often repeated.
    pub(crate) fn line(&mut self, line: &str) -> Option<Usage> {
        if let Some(model) = model_in(line) {
            self.model = Some(model);
            return None;
        }
        let figures = Figures::in_line(line.as_bytes())?;
        // The total is zero after the context was too small.
        if figures.total.is_zero() {
            return None;
        }
        if let (Some(session), Some((thread, works_for))) = (&self.session, figures.thread)
            && thread != *session
        {
            let last = self.sub_agents.get(&thread);
            let is_later = last
                .is_none_or(|last| figures.total != *last && figures.total.less(last).is_some());
            if works_for != *session || !is_later {
                return None;
            }
            self.sub_agents.insert(thread, figures.total);
            self.by_sub_agents = sum(self.by_sub_agents, figures.last);
            return self.usage();
        }
        if self.total == Some(figures.total) || self.has_records && !figures.is_record {
            return None;
        }
        self.has_records |= figures.is_record;
        self.total = Some(figures.total);
        self.requests = sum(self.requests, figures.last);
        self.usage()
    }

    /// Returns the usage of the run.
    pub(crate) fn usage(&self) -> Option<Usage> {
        match (self.main_usage(), self.sub_agent_usage()) {
            (Some(main), Some(others)) => Some(main.plus(others)),
            (main, others) => main.or(others),
        }
    }

    /// Returns the usage of the main agent.
    pub(crate) fn main_usage(&self) -> Option<Usage> {
        let used = match &self.before {
            Baseline::Known(before) => self.total?.less(before),
            Baseline::Unknown => self.requests,
        };
        used.filter(|used| !used.is_zero()).map(Usage::from)
    }

    pub(crate) fn sub_agent_usage(&self) -> Option<Usage> {
        self.by_sub_agents.map(Usage::from)
    }

    /// Returns the usage of the session, without its sub-agents.
    pub(crate) fn session_usage(&self) -> Option<Usage> {
        self.total.map(Usage::from)
    }
}

/// Returns the model in the settings of a turn.
fn model_in(line: &str) -> Option<String> {
    let head = line.get(..HEAD).unwrap_or(line);
    if !head.contains("\"turn_context\"") {
        return None;
    }
    let line = Object::parse(line)?;
    (line.text("type")? == "turn_context")
        .then(|| line.object("payload")?.text("model"))
        .flatten()
        .map(std::borrow::Cow::into_owned)
}

fn sum(so_far: Option<Totals>, more: Option<Totals>) -> Option<Totals> {
    match (so_far, more) {
        (Some(so_far), Some(more)) => Some(so_far.plus(&more)),
        (so_far, more) => so_far.or(more),
    }
}

#[cfg(test)]
#[cfg(repository)] // recordings
mod tests;
