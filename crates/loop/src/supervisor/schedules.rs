//! Runs that start at times: one task for each schedule.

mod state;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};
use teamster_api::agents::Event;
use teamster_api::{ProblemCode, RunService, Spec, ViewState};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;

use super::config::{Missed, ScheduleConfig};
use super::task::Supervisor;
use crate::clock::{Clock, SystemClock};
use state::{Handled, Times};

/// The longest sleep before the clock is read again: it may be set, and the machine may sleep.
const LONGEST_SLEEP: Duration = Duration::from_mins(1);
/// A time that has passed for longer was missed.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(2);

/// Service and events of a supervisor's schedules.
pub(super) struct Scheduler {
    runs: Option<Arc<dyn RunService>>,
    /// The schedules that run.
    running: Option<Schedules>,
    sender: UnboundedSender<Event>,
    pub(super) events: UnboundedReceiver<Event>,
}

impl Default for Scheduler {
    fn default() -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        Self {
            runs: None,
            running: None,
            sender,
            events,
        }
    }
}

teamster_core::debug_fields!(Scheduler {});

impl Supervisor {
    /// Starts the runs of schedules by this service. Without one, a configuration with schedules is a warning.
    #[must_use]
    pub fn runs(mut self, runs: Arc<dyn RunService>) -> Self {
        self.scheduler.runs = Some(runs);
        self
    }

    /// Follows the schedules of the configuration; none of them if everything is stopped.
    pub(super) fn follow_schedules(&mut self) {
        let wanted: &[ScheduleConfig] = if self.is_wanted(true) {
            &self.config.schedules
        } else {
            &[]
        };
        let scheduler = &mut self.scheduler;
        let is_followed =
            (scheduler.running.as_ref()).map_or(wanted.is_empty(), |running| running.are(wanted));
        if is_followed {
            return;
        }
        // The tasks of the others end first.
        scheduler.running = None;
        if !wanted.is_empty() {
            scheduler.running = Some(Schedules::start(
                wanted,
                scheduler.runs.clone(),
                Arc::new(SystemClock::new()),
                &self.config.file,
                &self.folder.schedules(),
                scheduler.sender.clone(),
            ));
        }
    }
}

/// The schedules of a configuration. Dropping them ends their tasks, and no run.
pub(super) struct Schedules {
    schedules: Vec<ScheduleConfig>,
    _tasks: JoinSet<()>,
}

/// What the tasks share.
struct Shared {
    runs: Arc<dyn RunService>,
    clock: Arc<dyn Clock>,
    /// The configuration, from which ids of runs are made.
    config: String,
    times: Times,
    events: UnboundedSender<Event>,
}

impl Schedules {
    /// Starts the schedules of a configuration. `file` has the times until which they were handled.
    pub(super) fn start(
        schedules: &[ScheduleConfig],
        runs: Option<Arc<dyn RunService>>,
        clock: Arc<dyn Clock>,
        config: &Path,
        file: &Path,
        events: UnboundedSender<Event>,
    ) -> Self {
        let mut tasks = JoinSet::new();
        let Some(runs) = runs else {
            let message =
                "this supervisor starts no runs, so `schedules` have no effect".to_owned();
            // The supervisor may have ended.
            let _ = events.send(Event::Warning { message });
            return Self {
                schedules: schedules.to_vec(),
                _tasks: tasks,
            };
        };
        let (times, problem) = Times::read(file);
        let shared = Arc::new(Shared {
            runs,
            clock,
            config: config.display().to_string(),
            times,
            events,
        });
        if let Some(problem) = problem {
            shared.warn(problem);
        }
        shared.times.keep(schedules.iter().map(|it| it.id.as_str()));
        for schedule in schedules {
            tasks.spawn(follow(schedule.clone(), shared.clone()));
        }
        Self {
            schedules: schedules.to_vec(),
            _tasks: tasks,
        }
    }

    /// Returns whether these are the schedules that run.
    pub(super) fn are(&self, schedules: &[ScheduleConfig]) -> bool {
        self.schedules == schedules
    }
}

/// Starts the runs of a schedule, one at a time.
async fn follow(schedule: ScheduleConfig, shared: Arc<Shared>) {
    // Not found only at the first time, which may be days away. A login, a program or a directory may come until then.
    let spec = Spec::from(schedule.run.clone());
    if let Err(error) = shared.runs.check(&spec).await {
        let id = &schedule.id;
        shared.warn(format!(
            "schedule {id}: as it is now, it cannot start: {error}"
        ));
    }
    loop {
        let now = shared.clock.now();
        let handled = match shared.times.of(&schedule.id) {
            // The clock was ahead, which does not keep the schedule from running. Or the times have changed: the new ones
            // were not missed.
            Some(last) if last.at > now || last.when != schedule.when.to_string() => {
                shared.handled(&schedule, now, last.run)
            }
            Some(handled) => handled,
            None => shared.handled(&schedule, now, None),
        };
        let Ok(due) = schedule.next_after(handled.at) else {
            return shared.warn(format!("schedule {}: it never runs again", schedule.id));
        };
        let left = due.duration_since(now);
        if left.is_positive() {
            let left = Duration::try_from(left).unwrap_or(LONGEST_SLEEP);
            shared.clock.sleep(left.min(LONGEST_SLEEP)).await;
            continue;
        }
        let run = shared.start(&schedule, due, now, handled.run).await;
        shared.handled(&schedule, shared.clock.now().max(due), run);
    }
}

impl Shared {
    /// Handles a time that has come. Returns the last run of the schedule.
    async fn start(
        &self,
        schedule: &ScheduleConfig,
        due: Timestamp,
        now: Timestamp,
        last: Option<String>,
    ) -> Option<String> {
        let id = &schedule.id;
        if now.duration_since(due) > TOLERANCE && schedule.missed == Missed::Skip {
            self.warn(format!(
                "schedule {id}: {due:.0} was missed, so it is skipped (`missed`: \"run\" starts such a run)"
            ));
            return last;
        }
        if let Some(run) = &last
            && self.is_going_on(run).await
        {
            self.warn(format!(
                "schedule {id}: {due:.0} is skipped, because run {run} has not ended"
            ));
            return last;
        }
        // The same time has the same id, so a supervisor that was killed meanwhile starts nothing twice.
        let run = self.run_id(id, due);
        let spec = Spec::from(schedule.run.clone());
        match self.runs.start(&run, spec).await {
            Ok(_) => {
                self.event(Event::Scheduled {
                    schedule: id.clone(),
                    run: run.clone(),
                });
                Some(run)
            }
            Err(error) => {
                self.warn(format!("schedule {id}: not started: {error}"));
                last
            }
        }
    }

    /// Returns whether a run may not have ended.
    async fn is_going_on(&self, run: &str) -> bool {
        match self.runs.outline(run).await {
            Ok(view) => view.summary.state != ViewState::Ended,
            Err(error) => error.code != Some(ProblemCode::RunNotFound),
        }
    }

    fn run_id(&self, schedule: &str, due: Timestamp) -> String {
        let mut digest = Sha256::new();
        for part in [&self.config, schedule, &due.to_string()] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part.as_bytes());
        }
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest.finalize()[..16]);
        uuid::Builder::from_custom_bytes(bytes)
            .into_uuid()
            .to_string()
    }

    /// Remembers until when a schedule was handled.
    fn handled(&self, schedule: &ScheduleConfig, at: Timestamp, run: Option<String>) -> Handled {
        let when = schedule.when.to_string();
        let handled = Handled { when, at, run };
        if let Err(error) = self.times.set(&schedule.id, handled.clone()) {
            self.warn(format!(
                "schedule {}: cannot save its last time: {error}; the next supervisor may skip or repeat it",
                schedule.id
            ));
        }
        handled
    }

    fn warn(&self, message: String) {
        self.event(Event::Warning { message });
    }

    fn event(&self, event: Event) {
        // The supervisor may have ended.
        let _ = self.events.send(event);
    }
}

#[cfg(test)]
mod tests;
