//! The record of a run: the only truth about it.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use teamster_api::{
    Grants, RunInfo, RunKind, RunSummary, RunView, ServiceError, Spec, TraceContext, ViewState,
    either,
};
use teamster_core::{AgentError, ErrorCode, ErrorKind, RunResult, RunStatus};

use crate::files::Files;
use crate::follow::End;
use crate::large::SpecFile;
use crate::names::{RunKey, host, work};
use crate::protocol::{Change, Claim, Head, State, Step, Tag};

/// Largest result that is in a record, in bytes of JSON. A longer one is in the last entry of the log alone.
const RESULT_BYTES: usize = 256 * 1024;
/// Largest record with a result, in bytes of JSON: a message of the server has at most 1 MiB.
const RECORD_BYTES: usize = 900 * 1024;

/// A run, as the bucket has it. Fields are only added.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    /// Version of the spec. A worker leaves a newer one to others.
    pub(crate) version: u32,
    pub(crate) state: State,
    pub(crate) claim: Option<Claim>,
    /// The worker that has claimed the run.
    pub(crate) worker: Option<String>,
    /// The random number of that worker's state directory.
    pub(crate) worker_machine: Option<Tag>,
    /// The longest time that this worker allows, in milliseconds.
    pub(crate) max_time_ms: Option<u64>,
    /// Where the agent works on this worker's machine, if the run does not name it: where its session began.
    pub(crate) directory: Option<PathBuf>,
    /// The only worker that may take the run: it was named, or has its session.
    pub(crate) machine: Option<String>,
    pub(crate) pool: String,
    pub(crate) provider: String,
    /// What is to be done, read by workers that know its version.
    pub(crate) spec: Value,
    /// The file with all of it, if it is too large for a record.
    pub(crate) spec_file: Option<SpecFile>,
    /// Times of the server in milliseconds since the Unix epoch: the clocks of machines may be wrong.
    pub(crate) times: Times,
    /// A person wants the run to stop, and its machine could not be reached.
    pub(crate) stop: Option<Stop>,
    /// The title that the run got after its start.
    pub(crate) title: Option<String>,
    /// The place of the run in the trace of its submitter.
    pub(crate) trace: Option<TraceContext>,
    /// What is shown of an ended run.
    pub(crate) summary: Option<Box<RunSummary>>,
    pub(crate) result: Option<Box<RunResult>>,
    /// What the end of the log has beside the result; `None` of a run that was not started.
    pub(crate) end: Option<End>,
    /// Of a run that was given up, nothing is left to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) settled: bool,
    /// The fields of newer versions: they stay when this one changes the record.
    #[serde(flatten)]
    pub(crate) newer: Map<String, Value>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Times {
    pub(crate) queued: u64,
    pub(crate) claimed: Option<u64>,
    pub(crate) started: Option<u64>,
    pub(crate) ended: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stop {
    /// By force.
    pub(crate) kill: bool,
}

impl Record {
    /// Creates the record of a run that is about to be submitted.
    pub(crate) fn new(pool: &str, spec: &Spec) -> Self {
        Self {
            version: Spec::VERSION,
            pool: pool.to_owned(),
            provider: spec.provider().to_owned(),
            spec: serde_json::to_value(spec).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Returns the subject of the run's hints.
    pub(crate) fn queue(&self, key: &RunKey) -> String {
        match &self.machine {
            Some(machine) => host(machine, key),
            None => work(&self.pool, &self.provider),
        }
    }

    /// Returns what of the record is in its header, too.
    pub(crate) fn heading(&self, key: &RunKey) -> Vec<(&'static str, String)> {
        let state = serde_json::to_value(self.state).unwrap_or_default();
        let mut heading = vec![
            ("Tm-State", state.as_str().unwrap_or_default().to_owned()),
            ("Tm-Queue", self.queue(key)),
            ("Tm-Queued", self.times.queued.to_string()),
        ];
        if let Some(claim) = self.claim {
            heading.push(("Tm-Instance", claim.instance.to_string()));
            heading.push(("Tm-Nonce", claim.nonce.to_string()));
        }
        if self.settled {
            heading.push(("Tm-Settled", "1".to_owned()));
        }
        heading
    }

    /// Returns whether its machine has kept its whole log, if there was room.
    pub(crate) fn has_whole_log(&self) -> bool {
        self.state == State::Ended
    }

    pub(crate) fn head(&self) -> Head {
        Head {
            state: self.state,
            claim: self.claim,
        }
    }

    /// Returns the record after a change at this time.
    pub(crate) fn changed(&self, change: Change, now: u64) -> Self {
        let mut record = self.clone();
        record.state = change.head.state;
        record.claim = change.head.claim;
        match change.step {
            Step::Submit => record.times.queued = now,
            Step::Claim => record.times.claimed = Some(now),
            Step::Start => record.times.started = Some(now),
            Step::HandOn => {
                (record.worker, record.worker_machine) = (None, None);
                record.times.claimed = None;
            }
            Step::Cancel => {
                (record.worker, record.worker_machine) = (None, None);
                record.times.ended = Some(now);
            }
            Step::End | Step::Conflict | Step::GiveUp => record.times.ended = Some(now),
            Step::Resume => {}
        }
        record
    }

    /// Returns the record as it was read later, with the end that this one already has: another field was changed meanwhile.
    pub(crate) fn replaced_by(self, found: Option<Self>) -> Self {
        match found {
            Some(found) => Self {
                summary: self.summary.or(found.summary),
                result: self.result.or(found.result),
                end: self.end.or(found.end),
                ..found
            },
            None => self,
        }
    }

    /// Returns the results of the run; `None` if no machine has claimed it.
    pub(crate) fn results(&self) -> Option<Files> {
        Some(Files::Results(self.claim?.nonce))
    }

    /// Adds what is shown of an ended run.
    pub(crate) fn ended(
        &mut self,
        summary: RunSummary,
        result: Option<Box<RunResult>>,
        end: Option<End>,
    ) {
        self.summary = Some(Box::new(summary));
        self.end = end;
        let bytes = serde_json::to_vec(self).map_or(0, |json| json.len());
        let most = RESULT_BYTES.min(RECORD_BYTES.saturating_sub(bytes));
        self.result =
            result.filter(|result| serde_json::to_vec(result).is_ok_and(|json| json.len() <= most));
    }

    /// Returns the spec. Fails if it is of a newer version, by the field that is not known.
    pub(crate) fn spec(&self) -> Result<Spec, ServiceError> {
        let spec = serde_json::from_value(self.spec.clone());
        spec.map_err(|error| {
            AgentError::invalid_params(format!("the spec is of another version: {error}")).into()
        })
    }

    /// Returns whether the run was submitted as the other one, which is new.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.pool == other.pool && self.spec == other.spec && self.spec_file == other.spec_file
    }

    /// Returns the record of another run with the same description, which is about to be submitted.
    pub(crate) fn again(&self) -> Self {
        Self {
            spec_file: self.spec_file.clone(),
            version: self.version,
            machine: self.machine.clone(),
            pool: self.pool.clone(),
            provider: self.provider.clone(),
            spec: self.spec.clone(),
            title: self.title.clone(),
            trace: self.trace.clone(),
            ..Self::default()
        }
    }

    /// Returns whether the run is to be resubmitted if it is given up, which a run that may change something cannot
    /// want.
    pub(crate) fn wants_rerun(&self) -> bool {
        matches!(self.spec(), Ok(Spec::Run(spec)) if spec.rerun_if_lost && spec.check().is_ok())
    }

    /// Returns whether the run was submitted with this spec.
    pub(crate) fn has_spec(&self, pool: &str, spec: &Spec) -> bool {
        self.pool == pool && self.has_description(spec)
    }

    pub(crate) fn info(&self, run: &str) -> RunInfo {
        let mut info = RunInfo::new(run, &*self.provider);
        info.accepted_at_ms = self.times.queued;
        let Ok(spec) = self.spec() else {
            return info;
        };
        either!(&spec, spec => {
            info.title = spec.first_title();
            info.model.clone_from(&spec.model);
            info.directory.clone_from(&spec.working_directory);
        });
        if let Spec::Session(spec) = spec {
            info.kind = RunKind::Session;
            info.continues = spec.continues;
            let mut grants = Grants::default();
            grants.permission = spec.permission;
            grants.allowed_tools = spec.allowed_tools;
            info.grants = Some(grants);
        }
        info
    }

    /// Returns what is known of the run without its machine.
    pub(crate) fn summary(&self, run: &str) -> RunSummary {
        if let Some(summary) = &self.summary {
            return self.dated((**summary).clone());
        }
        if !self.state.is_final() {
            return self.dated(self.live_summary(run));
        }
        let mut summary = self.dated(RunSummary::new(self.info(run), ViewState::Ended));
        // Its log is this one entry.
        summary.seq = u64::from(self.state == State::Cancelled);
        if let Some(result) = self.own_result(run) {
            summary.status = Some(result.status);
            summary.error = result.failure();
        }
        summary
    }

    fn live_summary(&self, run: &str) -> RunSummary {
        let mut summary = RunSummary::new(self.info(run), ViewState::Running);
        if self.state == State::Queued {
            summary.state = ViewState::Queued;
            summary.since = Some(self.times.queued);
        }
        summary
    }

    /// Returns the summary that the machine has made, with the times at which the run was submitted and ended, its machine,
    /// and the title that it got later.
    pub(crate) fn dated(&self, mut summary: RunSummary) -> RunSummary {
        summary.info.accepted_at_ms = self.times.queued;
        summary.info.title = self.title.clone().or(summary.info.title);
        if let Some(ended) = self.times.ended {
            summary.changed_at_ms = Some(ended);
        }
        summary.machine = self.worker.clone().or_else(|| self.machine.clone());
        summary
    }

    /// Returns the view of the run without its machine.
    pub(crate) fn view(&self, run: &str) -> RunView {
        let result = self.result.clone().or_else(|| self.own_result(run));
        let mut view = RunView::new(Arc::new(self.summary(run)), result);
        view.prompt = self.prompt();
        view
    }

    pub(crate) fn prompt(&self) -> Option<String> {
        match self.spec() {
            Ok(Spec::Run(spec)) => Some(spec.prompt),
            _ => None,
        }
    }

    /// Returns the result of a run that ended without one of its machine.
    pub(crate) fn own_result(&self, run: &str) -> Option<Box<RunResult>> {
        let result = RunResult::default();
        let failed = |message: String| {
            let mut result = RunResult::default().status(RunStatus::Failed);
            let error = AgentError::new(ErrorCode::Io, ErrorKind::Internal, message);
            result.errors.push(error);
            result
        };
        Some(Box::new(match self.state {
            State::Cancelled => {
                let mut result = result.status(RunStatus::Aborted);
                result.aborted = true;
                let message = "the run was cancelled before it was started";
                let error = AgentError::new(ErrorCode::Aborted, ErrorKind::Aborted, message);
                result.errors.push(error);
                result
            }
            State::Conflict => failed(format!(
                "the records of run {run} contradict each other, as after the server has lost a write: nothing more \
                 was started; look at its log before you start it again"
            )),
            State::Lost => failed(format!(
                "run {run} was given up, because its machine does not report: it may have worked"
            )),
            _ => return None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use teamster_api::RunSpec;

    use super::*;
    use crate::follow::end_of;
    use crate::protocol::Seen;

    #[test]
    fn an_end_stays_when_the_run_was_renamed_meanwhile() {
        let spec = Spec::from(RunSpec::new("claude", "x"));
        let read = Record::new("default", &spec);
        let mut ended = read.clone();
        let summary = RunSummary::new(read.info("r"), ViewState::Ended);
        let end = End {
            at_ms: 5,
            attempt: 2,
        };
        ended.ended(summary, Some(Box::new(RunResult::default())), Some(end));
        let mut renamed = read;
        renamed.title = Some("new".to_owned());
        let again = ended.clone().replaced_by(Some(renamed));
        assert_eq!(again.title.as_deref(), Some("new"));
        assert!(ended.summary.is_some() && ended.result.is_some());
        assert_eq!(
            (&again.summary, &again.result, again.end),
            (&ended.summary, &ended.result, Some(end))
        );
        assert_eq!(ended.clone().replaced_by(None), ended);
    }

    #[test]
    fn cancelled_run_has_the_number_of_its_only_entry() {
        let spec = Spec::from(RunSpec::new("claude", "x"));
        let mut record = Record::new("default", &spec);
        assert_eq!(record.summary("r").seq, 0);
        record.state = State::Cancelled;
        let log = end_of(&record, "r", 1);
        assert_eq!((log.len(), log[0].seq()), (1, record.summary("r").seq));
    }

    #[test]
    fn a_field_of_a_newer_version_stays_when_a_record_is_changed() {
        let spec = Spec::from(RunSpec::new("claude", "x"));
        let mut json = serde_json::to_value(Record::new("default", &spec)).unwrap();
        let newer = serde_json::json!({ "number": 0.1, "texts": ["a", null] });
        json["later"] = newer.clone();
        let mut record: Record = serde_json::from_value(json).unwrap();
        let summary = RunSummary::new(record.info("r"), ViewState::Ended);
        record.ended(summary, Some(Box::new(RunResult::default())), None);
        let text = serde_json::to_vec(&record).unwrap();
        let read: Record = serde_json::from_slice(&text).unwrap();
        assert_eq!(read, record);
        let claimed = read.changed(Change::give_up(started()).unwrap(), 7);
        assert_eq!(serde_json::to_value(claimed).unwrap()["later"], newer);
        // A resubmitted run is another one.
        let again = serde_json::to_value(read.again()).unwrap();
        assert_eq!(again.get("later"), None);
    }

    /// A record of which a worker has started the run.
    fn started() -> Seen {
        let claim = Claim {
            instance: Tag::of(1),
            nonce: Tag::of(2),
        };
        Seen {
            revision: 3,
            head: Some(Head {
                state: State::Started,
                claim: Some(claim),
            }),
            stop: false,
        }
    }

    #[test]
    fn record_with_a_long_description_has_its_result_in_the_log() {
        for (prompt, has_result) in [(10, true), (760 * 1024, false)] {
            let spec = Spec::from(RunSpec::new("claude", "x".repeat(prompt)));
            let mut record = Record::new("default", &spec);
            let mut result = RunResult::default();
            result.text = "y".repeat(200 * 1024);
            let summary = RunSummary::new(record.info("r"), ViewState::Ended);
            record.ended(summary, Some(Box::new(result)), None);
            assert_eq!(record.result.is_some(), has_result);
            assert!(serde_json::to_vec(&record).unwrap().len() < RECORD_BYTES);
        }
    }
}
