//! Telemetry of the runs of a process.

use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::TracerProvider;
use opentelemetry::{Context, InstrumentationScope};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use teamster_core::time::epoch_ms;
use teamster_core::{Id, LifecycleEntry, LogEntry, Outcome};
use teamster_metrics::Metrics;
use teamster_orchestrator::{Accepted, RunObserver};

use crate::collector::{of_figures, of_spans};
use crate::context::context_of;
use crate::figures;
use crate::settings::{Settings, Signal};
use crate::spans::{Spans, Vendors};
use crate::warning::Warning;

/// Time for which [`Telemetry::end`] waits for the collector.
pub const END_LIMIT: Duration = Duration::from_secs(3);

/// Sends the runs that it [observes](RunObserver), and [figures](Self::figures), to a collector. Clones share the
/// connections.
///
/// Runs are sent by a thread of its own, which starts with the first of them. No run waits for it: a queue that is full
/// drops spans, and the first failure is one warning.
#[derive(Clone)]
pub struct Telemetry {
    /// Settings of traces, if they are sent.
    traces: Option<Settings>,
    /// Settings of figures, if they are sent.
    metrics: Option<Settings>,
    parent: Context,
    vendors: Vendors,
    warning: Warning,
    started: Arc<OnceLock<Option<Started>>>,
    meters: Arc<OnceLock<SdkMeterProvider>>,
}

struct Started {
    provider: SdkTracerProvider,
    spans: Spans,
}

impl Telemetry {
    /// Reads the standard variables of OpenTelemetry. `None` if they turn nothing on. The span that `TRACEPARENT` names
    /// becomes the parent of all runs that have none in their own variables.
    pub fn from_environment() -> Option<Self> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let traces = Settings::read(Signal::Traces, &variable);
        let metrics = Settings::read(Signal::Metrics, &variable);
        if traces.is_none() && metrics.is_none() {
            return None;
        }
        Some(Self {
            traces,
            metrics,
            parent: context_of(&variable).unwrap_or_default(),
            vendors: Arc::new(|_| None),
            warning: Warning::new(Arc::new(|_| ())),
            started: Arc::default(),
            meters: Arc::default(),
        })
    }

    /// Sets the function that is called with the one warning, if something cannot be sent. It is called from another thread.
    /// Default: none.
    #[must_use]
    pub fn on_warning(mut self, call: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.warning = Warning::new(Arc::new(call));
        self
    }

    /// Sets the function that returns the vendor of a provider's models by the provider's id, such as that of
    /// [`CliInfo`](teamster_core::CliInfo::model_vendor). Default: the vendor that is named before the model, else the provider.
    #[must_use]
    pub fn model_vendors(
        mut self,
        vendors: impl Fn(&str) -> Option<&'static str> + Send + Sync + 'static,
    ) -> Self {
        self.vendors = Arc::new(vendors);
        self
    }

    /// Returns figures that are sent at the interval of the variables until [`end`](Self::end), for a server or worker that
    /// keeps them up. `None` if the variables do not turn figures on, or on the second call. `version` is that of the program.
    pub fn figures(&self, version: &str) -> Option<Metrics> {
        let settings = self.metrics.as_ref()?;
        let meters = match &settings.problem {
            Some(problem) => Err(problem.clone()),
            None => of_figures(settings, &self.warning).map_err(str::to_owned),
        };
        let meters = meters.map_err(|problem| self.warning.give(problem)).ok()?;
        let metrics = Metrics::new(version);
        figures::add_to(&meters.meter_with_scope(scope()), &metrics);
        self.meters.set(meters).ok()?;
        Some(metrics)
    }

    /// Ends the spans of runs that have not ended, and waits until the rest is sent, for at most [`END_LIMIT`]. To be called
    /// before the process ends. Blocks.
    pub fn end(&self) {
        let deadline = Instant::now() + END_LIMIT;
        let figures = self.meters.get().map(|meters| {
            let (meters, (sender, ended)) = (meters.clone(), mpsc::channel());
            // It has a time limit of its own, which is longer.
            thread::spawn(move || sender.send(meters.shutdown().is_ok()));
            ended
        });
        let mut is_complete = true;
        if let Some(started) = self.started() {
            started.spans.end(epoch_ms());
            is_complete &= started.provider.shutdown_with_timeout(END_LIMIT).is_ok();
        }
        if let Some(figures) = figures {
            let rest = deadline.saturating_duration_since(Instant::now());
            is_complete &= figures.recv_timeout(rest) == Ok(true);
        }
        if !is_complete {
            let seconds = END_LIMIT.as_secs();
            let problem = format!("the collector did not take it within {seconds} s");
            self.warning.give(problem);
        }
    }

    /// Returns what was started with the first run; `None` if nothing can be sent.
    fn started(&self) -> Option<&Started> {
        self.started.get()?.as_ref()
    }

    /// Starts sending, with the first run.
    fn start_once(&self) -> Option<&Started> {
        let settings = self.traces.as_ref()?;
        let started = self.started.get_or_init(|| match self.start(settings) {
            Ok(started) => Some(started),
            Err(problem) => {
                self.warning.give(problem);
                None
            }
        });
        started.as_ref()
    }

    fn start(&self, settings: &Settings) -> Result<Started, String> {
        if let Some(problem) = &settings.problem {
            return Err(problem.clone());
        }
        let provider = of_spans(settings, &self.warning)?;
        let spans = Spans::new(
            provider.tracer_with_scope(scope()),
            self.parent.clone(),
            settings.content,
            self.vendors.clone(),
        );
        Ok(Started { provider, spans })
    }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("teamster")
        .with_version(env!("CARGO_PKG_VERSION"))
        .build()
}

#[async_trait::async_trait]
impl RunObserver for Telemetry {
    async fn accepted(&self, run: Accepted<'_>) {
        if let Some(started) = self.start_once() {
            started.spans.accepted(run).await;
        }
    }

    fn variables(&self, run_id: &Id) -> Vec<(String, String)> {
        let started = self.started();
        started.map_or_else(Vec::new, |it| it.spans.variables(run_id))
    }

    fn agent_entry(&self, entry: &LogEntry) {
        if let Some(started) = self.started() {
            started.spans.agent_entry(entry);
        }
    }

    fn run_entry(&self, entry: &LifecycleEntry) {
        if let Some(started) = self.started() {
            started.spans.run_entry(entry);
        }
    }

    async fn ended(&self, outcome: &Outcome) {
        if let Some(started) = self.started() {
            started.spans.ended(outcome).await;
        }
    }
}

teamster_core::debug_fields!(Telemetry { traces, metrics });

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Option<Telemetry> {
        Telemetry::from_variables(|name| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    const ON: (&str, &str) = ("OTEL_TRACES_EXPORTER", "otlp");

    #[test]
    fn figures_are_there_once_if_they_are_turned_on() {
        assert!(read(&[ON]).unwrap().figures("1.2.3").is_none());
        let telemetry = read(&[("OTEL_METRICS_EXPORTER", "otlp")]).unwrap();
        assert!(telemetry.start_once().is_none());
        assert!(telemetry.figures("1.2.3").is_some());
        assert!(telemetry.figures("1.2.3").is_none());
    }

    #[test]
    fn end_without_a_run_starts_and_reports_nothing() {
        assert!(read(&[]).is_none());
        let telemetry = read(&[ON, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap();
        let telemetry = telemetry.on_warning(|text| panic!("{text}"));
        telemetry.end();
        assert!(telemetry.started().is_none());
    }

    #[test]
    fn protocol_that_is_not_supported_is_one_warning() {
        let telemetry = read(&[ON, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap();
        let warnings = Arc::new(std::sync::Mutex::new(Vec::new()));
        let given = warnings.clone();
        let telemetry =
            telemetry.on_warning(move |text| given.lock().unwrap().push(text.to_owned()));
        assert!(telemetry.start_once().is_none());
        assert!(telemetry.clone().start_once().is_none());
        telemetry.end();
        let warnings = warnings.lock().unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].starts_with("telemetry is not sent: only the protocol http/protobuf"),
            "{warnings:?}"
        );
    }
}
