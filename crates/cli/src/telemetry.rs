//! Telemetry of the runs of this process, by OTLP.

use std::sync::{Arc, OnceLock};
use std::thread;

use teamster_host::Host;
use teamster_telemetry::{Metrics, Telemetry};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::report::warn;
use crate::signals::Source;
use crate::words::one_line;

/// Telemetry, if the environment turns it on.
static TELEMETRY: OnceLock<Telemetry> = OnceLock::new();

/// Has all runs of the host observed, if the environment turns telemetry on. Nothing is started before the first run: a
/// runner may have no other thread at its beginning.
pub(crate) fn observe(host: Host) -> Host {
    let Some(telemetry) = Telemetry::from_environment() else {
        return host;
    };
    let providers = host.providers().clone();
    let vendor = move |id: &str| providers.get(id)?.info().model_vendor;
    let telemetry = telemetry
        .model_vendors(vendor)
        .on_warning(|problem| warn(&[one_line(problem)]));
    let telemetry = TELEMETRY.get_or_init(|| telemetry);
    host.observer(Arc::new(telemetry.clone()))
}

/// Returns figures that are sent, if the environment turns them on, for a server or worker that keeps them up.
pub(crate) fn figures() -> Option<Metrics> {
    TELEMETRY.get()?.figures(env!("CARGO_PKG_VERSION"))
}

/// Sends the rest, before the process ends. A signal ends the wait for the collector.
pub(crate) fn end() {
    let Some(telemetry) = TELEMETRY.get() else {
        return;
    };
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
        return telemetry.end();
    };
    runtime.block_on(async move {
        // The handlers of a command's own sources stay, so without a source, signals would do nothing.
        let Ok(mut signals) = Source::new() else {
            return telemetry.end();
        };
        let (sender, ended) = oneshot::channel();
        thread::spawn(move || {
            telemetry.end();
            // Fails after a signal.
            let _ = sender.send(());
        });
        tokio::select! {
            _ = ended => {}
            () = signals.next() => {}
        }
    });
}
