//! The CLI's session files.
//!
//! Each session has a file `projects/<directory>/<id>.jsonl` in the CLI's folder, to which a resumed run appends.
//! This module only reads it. At the end of a run, versions that continue from the session's totals (seen from
//! 2.1.290 on) append a `cost-state` line with the current totals.
//!
//! The messages of sub-agents are in separate files in `projects/<directory>/<id>/subagents`, those of a workflow in
//! its subfolder `workflows/<workflow>`. A message is written once it is complete, with its usage, in one line per
//! block.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use memchr::memmem;
use serde::Deserialize;
use teamster_core::provider::{RecordFiles, is_uuid};
use teamster_core::{ExecuteParams, Id, Usage};

use crate::totals::{ApiUsage, Baseline, ModelUsageLine, Totals};

/// Number of bytes read at a time, from the end of the file.
const PIECE: u64 = 1 << 20;
/// Text that lines of answers contain.
const ANSWERS: &[&str] = &["\"type\":\"assistant\""];
/// Prefix of a line with totals.
const COST_STATE: &[u8] = b"{\"type\":\"cost-state\",";

/// Returns the totals of the resumed or forked session before the run.
pub(crate) fn baseline(params: &ExecuteParams) -> Baseline {
    let Some(id) = params.session_id.as_deref() else {
        let resumes = |arg: &String| {
            let flag = arg.split_once('=').map_or(arg.as_str(), |(flag, _)| flag);
            ["--continue", "-c", "--resume", "-r", "--from-pr"].contains(&flag)
        };
        return if params.extra_args.iter().any(resumes) {
            Baseline::Unknown
        } else {
            Baseline::New
        };
    };
    let projects = projects(params).filter(|_| is_uuid(id));
    match projects.and_then(|projects| find(&projects, id)) {
        Some(file) => totals(&file).map_or(Baseline::Unknown, Baseline::Resumed),
        None => Baseline::Unknown,
    }
}

/// Returns the files of a session's sub-agents.
pub(crate) fn sub_agents(projects: &Path, session: &str) -> Option<RecordFiles> {
    if !is_uuid(session) {
        return None;
    }
    let paths = vec![
        format!("*/{session}/subagents/agent-*.jsonl"),
        format!("*/{session}/subagents/workflows/*/agent-*.jsonl"),
    ];
    Some(RecordFiles::new(projects, paths, ANSWERS))
}

/// Returns the message id and usage in a line of such a file, if it is an answer.
pub(crate) fn answer(line: &str) -> Option<(Id, Usage)> {
    let line: AnswerLine<'_> = serde_json::from_str(line).ok()?;
    let message = line.message.filter(|_| line.kind == "assistant")?;
    Some((Id::from(message.id?), message.usage?.into()))
}

/// Returns the folder with the sessions of all projects.
pub(crate) fn projects(params: &ExecuteParams) -> Option<PathBuf> {
    let folder = params.cli_folder("CLAUDE_CONFIG_DIR", ".claude")?;
    Some(folder.join("projects"))
}

/// Returns the file of a session. Its folder depends on the working directory. Ids are unique, so all folders are
/// searched.
fn find(projects: &Path, id: &str) -> Option<PathBuf> {
    let name = format!("{id}.jsonl");
    let folders = fs::read_dir(projects).ok()?.flatten();
    let mut files = folders.map(|folder| folder.path().join(&name));
    files.find(|file| file.is_file())
}

/// Returns the last totals in a session's file; empty if the version that wrote it does not store them. `None` if the
/// file is unreadable.
fn totals(path: &Path) -> Option<Totals> {
    let mut file = File::open(path).ok()?;
    let mut end = file.metadata().ok()?.len();
    // Beginning of the line that the last piece cut.
    let mut rest = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(PIECE);
        file.seek(SeekFrom::Start(start)).ok()?;
        let mut piece = Vec::new();
        (&mut file).take(end - start).read_to_end(&mut piece).ok()?;
        piece.extend_from_slice(&rest);
        let mut from = piece.len();
        while let Some(at) = memmem::rfind(&piece[..from], COST_STATE) {
            let begins = at.checked_sub(1).is_none_or(|at| piece[at] == b'\n');
            if begins && (at > 0 || start == 0) {
                let line = piece[at..].split(|b| *b == b'\n').next();
                let totals = line.and_then(|line| serde_json::from_slice::<CostState>(line).ok());
                if let Some(totals) = totals {
                    return Some(totals.into());
                }
            }
            from = at;
        }
        let first = piece.iter().position(|b| *b == b'\n');
        piece.truncate(first.map_or(piece.len(), |at| at + 1));
        rest = piece;
        end = start;
    }
    Some(Totals::default())
}

/// `cost-state`: usage of the session over all its runs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CostState {
    #[serde(rename = "totalCostUSD")]
    total_cost_usd: f64,
    #[serde(rename = "totalAPIDuration")]
    total_api_duration: Option<f64>,
    model_usage: BTreeMap<String, ModelUsageLine>,
}

/// Message in the file of a sub-agent.
#[derive(Deserialize)]
struct AnswerLine<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    message: Option<Answer<'a>>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    usage: Option<ApiUsage>,
}

impl From<CostState> for Totals {
    fn from(state: CostState) -> Self {
        let models = state.model_usage.into_iter();
        let by_model = models.map(|(model, line)| (model, line.into())).collect();
        Self::new(by_model, state.total_cost_usd, state.total_api_duration)
    }
}

#[cfg(test)]
mod tests;
