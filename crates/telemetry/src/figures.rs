//! Figures as instruments that a reader asks at its interval.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};
use teamster_metrics::Metrics;

/// Adds an instrument for each figure.
pub(crate) fn add_to(meter: &Meter, metrics: &Metrics) {
    for figure in metrics.figures() {
        let (name, source) = (figure.name, metrics.clone());
        let observe = move |instrument: &dyn AsyncInstrument<f64>| {
            let current = source.figures();
            let current = current.into_iter().find(|it| it.name == name);
            for (labels, value) in current.into_iter().flat_map(|it| it.values) {
                let labels = labels.into_iter();
                let attributes: Vec<_> = labels.map(|(key, it)| KeyValue::new(key, it)).collect();
                instrument.observe(value, &attributes);
            }
        };
        // The provider keeps the instruments.
        if figure.is_counter {
            let counter = meter.f64_observable_counter(name);
            let counter = counter.with_description(figure.help);
            let _ = counter.with_callback(observe).build();
        } else {
            let gauge = meter.f64_observable_gauge(name);
            let gauge = gauge.with_description(figure.help);
            let _ = gauge.with_callback(observe).build();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use opentelemetry::metrics::MeterProvider;
    use opentelemetry_sdk::metrics::data::{
        AggregatedMetrics, GaugeDataPoint, MetricData, ScopeMetrics, SumDataPoint,
    };
    use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
    use teamster_metrics::WorkerFigures;

    use super::*;

    /// Returns the values of the last export by the names of their figures; `true` is a gauge.
    fn exported(exporter: &InMemoryMetricExporter) -> BTreeMap<String, (bool, Vec<f64>)> {
        let all = exporter.get_finished_metrics().unwrap();
        let mut values = BTreeMap::new();
        let scopes = all.last().unwrap().scope_metrics();
        for metric in scopes.flat_map(ScopeMetrics::metrics) {
            let of_metric = match metric.data() {
                AggregatedMetrics::F64(MetricData::Gauge(gauge)) => (
                    true,
                    gauge.data_points().map(GaugeDataPoint::value).collect(),
                ),
                AggregatedMetrics::F64(MetricData::Sum(sum)) => {
                    assert!(sum.is_monotonic());
                    (false, sum.data_points().map(SumDataPoint::value).collect())
                }
                other => panic!("{other:?}"),
            };
            values.insert(metric.name().to_owned(), of_metric);
        }
        values
    }

    #[test]
    fn each_export_has_the_current_values() {
        let exporter = InMemoryMetricExporter::default();
        let provider = SdkMeterProvider::builder()
            .with_periodic_exporter(exporter.clone())
            .build();
        let metrics = Metrics::new("1.2.3");
        add_to(&provider.meter("test"), &metrics);
        let mut worker = WorkerFigures::default();
        for running in [1_u32, 3] {
            worker.running = running.into();
            metrics.set_worker(worker);
            provider.force_flush().unwrap();
            let values = exported(&exporter);
            let used = (true, vec![f64::from(running)]);
            assert_eq!(values["teamster_worker_slots_used"], used);
            assert_eq!(values["teamster_build_info"], (true, vec![1.0]));
            // Without values, a figure is absent.
            assert!(!values.contains_key("teamster_runs_started"));
        }
        provider.shutdown().unwrap();
    }
}
