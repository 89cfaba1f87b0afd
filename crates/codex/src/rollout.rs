//! What the CLI keeps of a session.
//!
//! Every session has a file `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl` in the CLI's home, to
//! which a resumed run appends. It is only read here, and only its end: each request to the model
//! leaves a line with the total so far.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use teamster_core::{ExecuteParams, is_uuid};

use crate::decoder::wire::Object;
use crate::decoder::{Baseline, Totals};

/// How much of the end of a file is looked at first, in bytes.
const FIRST_TAIL: u64 = 64 << 10;
/// How much of it is looked at at most. A line is some 50 KB at most, unless there are images.
const LARGEST_TAIL: u64 = 16 << 20;
/// How far into a line its type stands at most, in bytes.
const HEAD: usize = 256;

/// The total of the session that is resumed or forked, before the run.
pub(crate) fn baseline(params: &ExecuteParams) -> Baseline {
    let total = || {
        let id = params.session_id.as_deref()?.to_ascii_lowercase();
        let file = find(&home(params)?.join("sessions"), &id)?;
        last_total(&file)
    };
    total().map_or(Baseline::Unknown, Baseline::Known)
}

/// The CLI's home: `CODEX_HOME`, or `.codex` in the user's.
pub(crate) fn home(params: &ExecuteParams) -> Option<PathBuf> {
    let variable = |name: &str| {
        let value = match params.env.get(name) {
            Some(value) => value.into(),
            None => std::env::var_os(name)?,
        };
        (!value.is_empty()).then(|| PathBuf::from(value))
    };
    let home = match variable("CODEX_HOME") {
        Some(home) => home,
        None => variable("HOME")?.join(".codex"),
    };
    Some(match &params.working_directory {
        Some(directory) => directory.join(home),
        None => home,
    })
}

/// The file of a session. Its id tells when the session began, and so in which directory it is; the
/// CLI names that after the local day, which may be the one before or after.
fn find(sessions: &Path, id: &str) -> Option<PathBuf> {
    let day = day_of(id)?;
    let ending = format!("-{id}.jsonl");
    [day, day.checked_sub(1)?, day + 1]
        .into_iter()
        .find_map(|day| {
            let (year, month, day) = date(day);
            let directory = sessions.join(format!("{year:04}/{month:02}/{day:02}"));
            fs::read_dir(directory).ok()?.flatten().find_map(|entry| {
                let name = entry.file_name();
                let name = name.to_str()?;
                (name.starts_with("rollout-") && name.ends_with(&ending)).then(|| entry.path())
            })
        })
}

/// The day on which an id was made, counted from 1970-01-01. Only ids of version 7 tell.
fn day_of(id: &str) -> Option<u64> {
    if !is_uuid(id) || id.as_bytes()[14] != b'7' {
        return None;
    }
    let (high, low) = (&id[..8], &id[9..13]);
    let ms = u64::from_str_radix(high, 16).ok()? << 16 | u64::from_str_radix(low, 16).ok()?;
    Some(ms / 86_400_000)
}

/// Year, month and day of a day counted from 1970-01-01.
///
/// The usual computation in eras of 400 years, which begin on the 1st of March of the year 0.
fn date(day: u64) -> (u64, u64, u64) {
    let day = day + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

/// The last total in a session's file. One without any is of a session that has used nothing, as far
/// as the CLI knows. `None` if the file cannot be read, or its end holds none.
fn last_total(path: &Path) -> Option<Totals> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut size = FIRST_TAIL;
    loop {
        let start = length.saturating_sub(size);
        file.seek(SeekFrom::Start(start)).ok()?;
        let mut tail = Vec::new();
        (&mut file).take(size).read_to_end(&mut tail).ok()?;
        if let Some(total) = tail.rsplit(|b| *b == b'\n').find_map(total_in) {
            return Some(total);
        }
        if start == 0 {
            return Some(Totals::default());
        }
        if size >= LARGEST_TAIL {
            return None;
        }
        size *= 4;
    }
}

/// The total in a line, if it holds one: a record of usage, or an event that reports it.
fn total_in(line: &[u8]) -> Option<Totals> {
    let head = String::from_utf8_lossy(&line[..line.len().min(HEAD)]);
    if !head.contains("\"token_usage_record\"") && !head.contains("\"token_count\"") {
        return None;
    }
    let text = String::from_utf8_lossy(line);
    let line = Object::parse(&text)?;
    let payload = line.object("payload")?;
    let usage = match &*line.text("type")? {
        "token_usage_record" => payload.object("thread_token_usage")?,
        "event_msg" => payload.object("info")?.object("total_token_usage")?,
        _ => return None,
    };
    Some(Totals::of(&usage))
}

#[cfg(test)]
mod tests;
