//! The families of figures: their names, their types and what they are about.

use std::collections::BTreeSet;

use prometheus_client::metrics::gauge::Gauge;

use crate::figures::{Counters, Figures, Gauges, Sums};

/// The families of the runs of a service.
#[derive(Debug, Default)]
pub(crate) struct Families {
    pub(crate) runs: Gauges,
    pub(crate) started: Counters,
    pub(crate) ended: Counters,
    pub(crate) seconds: Sums,
    pub(crate) retries: Counters,
    pub(crate) tokens: Counters,
    pub(crate) cost: Sums,
    pub(crate) requests: Gauges,
    pub(crate) is_current: Gauge,
    pub(crate) fleet: FleetFamilies,
    pub(crate) worker: WorkerFamilies,
}

/// The families of a fleet. They have no values without one.
#[derive(Debug, Default)]
pub(crate) struct FleetFamilies {
    pub(crate) workers: Gauges,
    pub(crate) draining: Gauges,
    pub(crate) slots: Gauges,
    pub(crate) used: Gauges,
    pub(crate) queued: Gauges,
    pub(crate) queued_for_machines: Gauges,
    pub(crate) oldest: Gauges,
    pub(crate) holds: Gauges,
}

/// The families of a worker. They have no values elsewhere.
#[derive(Debug, Default)]
pub(crate) struct WorkerFamilies {
    pub(crate) slots: Gauges,
    pub(crate) used: Gauges,
    pub(crate) draining: Gauges,
    pub(crate) uncopied: Gauges,
}

impl Families {
    pub(crate) fn add_to(&self, figures: &mut Figures, version: &str) {
        let build = Gauges::default();
        build
            .get_or_create(&vec![("version", version.to_owned())])
            .set(1);
        figures.gauges("teamster_build_info", "The version, as a label", &build);
        figures.gauges(
            "teamster_runs",
            "Runs and sessions that have not ended",
            &self.runs,
        );
        figures.counters(
            "teamster_runs_started",
            "Runs and sessions that were started",
            &self.started,
        );
        figures.counters(
            "teamster_runs_ended",
            "Runs and sessions that have ended",
            &self.ended,
        );
        figures.sums(
            "teamster_run_duration_seconds",
            "Time that ended runs and sessions took",
            &self.seconds,
        );
        figures.counters(
            "teamster_run_retries",
            "Attempts of ended runs beyond the first",
            &self.retries,
        );
        figures.counters("teamster_tokens", "Tokens used", &self.tokens);
        figures.sums("teamster_cost_usd", "Cost in US dollars", &self.cost);
        figures.gauges(
            "teamster_requests_waiting",
            "Requests that wait for an answer",
            &self.requests,
        );
        figures.gauge(
            "teamster_runs_current",
            "1 while changes of runs arrive, 0 while the figures of runs are old",
            &self.is_current,
        );
        self.fleet.add_to(figures);
        self.worker.add_to(figures);
    }
}

impl FleetFamilies {
    fn add_to(&self, figures: &mut Figures) {
        for (name, help, family) in [
            (
                "teamster_fleet_workers",
                "Workers that take runs from the pool",
                &self.workers,
            ),
            (
                "teamster_fleet_workers_draining",
                "Workers of the pool that take no new runs",
                &self.draining,
            ),
            (
                "teamster_fleet_slots",
                "Runs at once of the workers that take runs from the pool",
                &self.slots,
            ),
            (
                "teamster_fleet_slots_used",
                "Those slots that have a run",
                &self.used,
            ),
            (
                "teamster_fleet_queued_runs",
                "Runs that wait in the pool",
                &self.queued,
            ),
            (
                "teamster_fleet_queued_for_machines_runs",
                "Runs that wait for one machine",
                &self.queued_for_machines,
            ),
            (
                "teamster_fleet_oldest_wait_seconds",
                "Time for which the oldest of them waits",
                &self.oldest,
            ),
            (
                "teamster_fleet_holds",
                "Limits because of which the agent takes no runs",
                &self.holds,
            ),
        ] {
            figures.gauges(name, help, family);
        }
    }

    pub(crate) fn clear(&self) {
        for family in [
            &self.workers,
            &self.draining,
            &self.slots,
            &self.used,
            &self.queued,
            &self.queued_for_machines,
            &self.oldest,
            &self.holds,
        ] {
            family.clear();
        }
    }
}

impl WorkerFamilies {
    fn add_to(&self, figures: &mut Figures) {
        for (name, help, family) in [
            (
                "teamster_worker_slots",
                "Runs at once of this worker",
                &self.slots,
            ),
            (
                "teamster_worker_slots_used",
                "Runs that this worker carries out",
                &self.used,
            ),
            (
                "teamster_worker_draining",
                "1 while this worker takes no new runs",
                &self.draining,
            ),
            (
                "teamster_worker_uncopied_entries",
                "Log entries of its runs that are not in the fleet yet",
                &self.uncopied,
            ),
        ] {
            figures.gauges(name, help, family);
        }
    }
}

/// The most different values of a label: others count as `other`. Pools and agents of queued runs are what a client has
/// sent.
const MOST_VALUES: usize = 64;

/// Names that are values of a label, bounded in number.
#[derive(Debug, Default)]
pub(crate) struct Values(BTreeSet<String>);

impl Values {
    pub(crate) fn value(&mut self, name: &str) -> String {
        // The command of an agent that is named by one may be secret, and there are many.
        let name = match name.trim_start().split_once(':') {
            Some((kind, _)) => kind.to_ascii_lowercase(),
            None => name.to_owned(),
        };
        if self.0.len() < MOST_VALUES || self.0.contains(&name) {
            self.0.insert(name.clone());
            return name;
        }
        "other".to_owned()
    }
}
