//! Figures that can be listed: the registry of Prometheus can only write them.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family as ByLabels;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};
use teamster_core::sync::lock;

/// Names and values of labels.
pub(crate) type Labels = Vec<(&'static str, String)>;
pub(crate) type Gauges = Family<Gauge>;
pub(crate) type Counters = Family<Counter>;
/// Counters of fractions.
pub(crate) type Sums = Family<Sum>;
pub(crate) type Sum = Counter<f64, AtomicU64>;

/// A figure with its current values.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Figure {
    /// Name, as that in the text format without `_total`.
    pub name: &'static str,
    /// Description for people.
    pub help: &'static str,
    /// True if it only grows.
    pub is_counter: bool,
    /// The values by their labels. None before the first of them.
    pub values: Vec<(Vec<(&'static str, String)>, f64)>,
}

/// A family of values by their labels.
#[derive(Debug, Clone)]
pub(crate) struct Family<M> {
    values: ByLabels<Labels, M>,
    labels: Arc<Mutex<BTreeSet<Labels>>>,
}

impl<M: Default> Default for Family<M> {
    fn default() -> Self {
        Self {
            values: ByLabels::default(),
            labels: Arc::default(),
        }
    }
}

impl<M> Family<M> {
    /// Returns the value with these labels.
    pub(crate) fn get_or_create<'a>(
        &'a self,
        labels: &Labels,
    ) -> impl Deref<Target = M> + use<'a, M> {
        let mut known = lock(&self.labels);
        if !known.contains(labels) {
            known.insert(labels.clone());
        }
        self.values.get_or_create(labels)
    }

    pub(crate) fn clear(&self) {
        let mut known = lock(&self.labels);
        known.clear();
        self.values.clear();
    }
}

/// A kind of value.
trait Number {
    const IS_COUNTER: bool;

    fn number(&self) -> f64;
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of runs and tokens are smaller"
)]
impl Number for Gauge {
    const IS_COUNTER: bool = false;

    fn number(&self) -> f64 {
        self.get() as f64
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of runs and tokens are smaller"
)]
impl Number for Counter {
    const IS_COUNTER: bool = true;

    fn number(&self) -> f64 {
        self.get() as f64
    }
}

impl Number for Sum {
    const IS_COUNTER: bool = true;

    fn number(&self) -> f64 {
        self.get()
    }
}

/// All figures, for their text and as a list.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    registry: Registry,
    list: Vec<Listed>,
}

/// A figure of the list.
#[derive(Debug)]
struct Listed {
    name: &'static str,
    help: &'static str,
    values: Kind,
}

#[derive(Debug)]
enum Kind {
    Gauges(Gauges),
    Counters(Counters),
    Sums(Sums),
    /// Without labels.
    Gauge(Gauge),
}

impl Figures {
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn gauges(&mut self, name: &'static str, help: &'static str, family: &Gauges) {
        self.register(name, help, family.values.clone());
        self.add(name, help, Kind::Gauges(family.clone()));
    }

    pub(crate) fn counters(&mut self, name: &'static str, help: &'static str, family: &Counters) {
        self.register(name, help, family.values.clone());
        self.add(name, help, Kind::Counters(family.clone()));
    }

    pub(crate) fn sums(&mut self, name: &'static str, help: &'static str, family: &Sums) {
        self.register(name, help, family.values.clone());
        self.add(name, help, Kind::Sums(family.clone()));
    }

    /// Adds a gauge without labels.
    pub(crate) fn gauge(&mut self, name: &'static str, help: &'static str, gauge: &Gauge) {
        self.register(name, help, gauge.clone());
        self.add(name, help, Kind::Gauge(gauge.clone()));
    }

    fn register(&mut self, name: &'static str, help: &'static str, metric: impl Metric) {
        self.registry.register(name, help, metric);
    }

    fn add(&mut self, name: &'static str, help: &'static str, values: Kind) {
        self.list.push(Listed { name, help, values });
    }

    /// Returns all figures with their current values.
    pub(crate) fn current(&self) -> Vec<Figure> {
        let current = |listed: &Listed| {
            let (is_counter, values) = match &listed.values {
                Kind::Gauges(family) => values(family),
                Kind::Counters(family) => values(family),
                Kind::Sums(family) => values(family),
                Kind::Gauge(gauge) => (false, vec![(Vec::new(), gauge.number())]),
            };
            Figure {
                name: listed.name,
                help: listed.help,
                is_counter,
                values,
            }
        };
        self.list.iter().map(current).collect()
    }
}

/// Returns whether values of the family only grow, and these.
fn values<M: Number>(family: &Family<M>) -> (bool, Vec<(Labels, f64)>) {
    let known = lock(&family.labels);
    let value = |labels: &Labels| Some((labels.clone(), family.values.get(labels)?.number()));
    (M::IS_COUNTER, known.iter().filter_map(value).collect())
}
