//! The connection to a collector: OTLP over the HTTP and TLS that requests to MCP servers have too.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use hyper_rustls::ConfigBuilderExt;
use opentelemetry::{Key, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    MetricExporter, Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{SdkMeterProvider, Temporality};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracerProvider, SpanData};
use reqwest::redirect::Policy;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use teamster_core::sync::lock;
use tokio::runtime::{Builder, Runtime};

use crate::settings::Settings;
use crate::warning::Warning;

/// Name of this service, unless the user has set one.
const SERVICE: &str = "teamster";
/// Beginning of the name that the SDK makes up.
const UNNAMED: &str = "unknown_service";

/// Problem of the exporter's own variables. Its error has the value.
const INVALID: &str = "OTEL_EXPORTER_OTLP_ENDPOINT or another variable about the collector is not valid: set it to an address such as http://127.0.0.1:4318";

/// Creates what sends spans in batches, from a thread of its own with a bounded queue. A full queue drops spans.
///
/// # Errors
///
/// Fails with the problem if the variables about the connection are not valid. It names no value, which may be secret.
pub(crate) fn of_spans(
    settings: &Settings,
    warning: &Warning,
) -> Result<SdkTracerProvider, &'static str> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_http_client(Client::new(settings.timeout, warning.clone()))
        .with_retry_policy(retries())
        .build()
        .map_err(|_| INVALID)?;
    let exporter = Reported::new(exporter, warning);
    Ok(SdkTracerProvider::builder()
        .with_resource(resource())
        .with_batch_exporter(exporter)
        .build())
}

/// Creates what sends figures at an interval, from a thread of its own.
///
/// # Errors
///
/// As [`of_spans`].
pub(crate) fn of_figures(
    settings: &Settings,
    warning: &Warning,
) -> Result<SdkMeterProvider, &'static str> {
    let exporter = MetricExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_http_client(Client::new(settings.timeout, warning.clone()))
        .with_retry_policy(retries())
        .build()
        .map_err(|_| INVALID)?;
    let exporter = Reported::new(exporter, warning);
    Ok(SdkMeterProvider::builder()
        .with_resource(resource())
        .with_periodic_exporter(exporter)
        .build())
}

/// Returns the retries of a request: sending must not hold up the end of a process.
fn retries() -> RetryPolicy {
    RetryPolicy::recommended().with_max_retries(1)
}

/// Returns what is known of this service: what the user has set, else its name, its version and this process.
fn resource() -> Resource {
    let of_user = Resource::builder().build();
    let is_set = |name| of_user.get(&Key::from_static_str(name)).is_some();
    let name = of_user.get(&Key::from_static_str("service.name"));
    let has_name = name.is_some_and(|name| !name.as_str().starts_with(UNNAMED));
    let mut builder = Resource::builder();
    if !has_name {
        builder = builder.with_service_name(SERVICE);
    }
    if !is_set("service.version") {
        builder =
            builder.with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    }
    if !is_set("service.instance.id") {
        // Counters of several processes must not be mixed up.
        static INSTANCE: OnceLock<String> = OnceLock::new();
        let instance =
            INSTANCE.get_or_init(|| RandomIdGenerator::default().new_trace_id().to_string());
        builder = builder.with_attribute(KeyValue::new("service.instance.id", instance.clone()));
    }
    builder.build()
}

/// An exporter that reports its first failure.
#[derive(Debug)]
struct Reported<E> {
    exporter: E,
    warning: Warning,
}

impl<E> Reported<E> {
    fn new(exporter: E, warning: &Warning) -> Self {
        Self {
            exporter,
            warning: warning.clone(),
        }
    }

    /// Reports a failure. A connection that fails was reported with its reason.
    fn report(&self, sent: OTelSdkResult) -> OTelSdkResult {
        sent.inspect_err(|error| self.warning.give(error))
    }
}

impl opentelemetry_sdk::trace::SpanExporter for Reported<SpanExporter> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.report(self.exporter.export(batch).await)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl PushMetricExporter for Reported<MetricExporter> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.report(self.exporter.export(metrics).await)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}

/// HTTP client of an exporter. Its requests run on the exporter's thread, which has no runtime of its own.
struct Client {
    timeout: Duration,
    warning: Warning,
    /// Created by the first request, which delays no run. A runtime that is dropped in a task would panic.
    connection: Mutex<Option<Connection>>,
}

struct Connection {
    http: reqwest::Client,
    runtime: Runtime,
}

impl Client {
    fn new(timeout: Duration, warning: Warning) -> Self {
        Self {
            timeout,
            warning,
            connection: Mutex::default(),
        }
    }

    /// Sends a request and waits for the response.
    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let mut kept = lock(&self.connection);
        let connection = match &mut *kept {
            Some(connection) => connection,
            none => {
                let is_encrypted = request.uri().scheme_str() == Some("https");
                none.insert(Connection::new(self.timeout, is_encrypted)?)
            }
        };
        let sent = connection.http.send_bytes(request);
        connection.runtime.block_on(sent)
    }
}

impl Connection {
    fn new(timeout: Duration, is_encrypted: bool) -> Result<Self, HttpError> {
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(is_encrypted)?)
            .timeout(timeout)
            // A redirect would send the headers, with their secrets, to another host.
            .redirect(Policy::none())
            .build()?;
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        Ok(Self { http, runtime })
    }
}

teamster_core::debug_fields!(Client {});

impl HttpClient for Client {
    // The form that the attribute of the trait gives its method.
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            let sent = self.send(request);
            if let Err(error) = &sent {
                let reason = innermost(&**error);
                let problem = format!("the collector cannot be reached: {reason}");
                self.warning.give(problem);
            }
            sent
        })
    }
}

/// Returns the settings of TLS, with the system's certificates if they are needed: to read them takes a while.
fn tls(is_encrypted: bool) -> Result<ClientConfig, HttpError> {
    // The process's default provider is not used, because an application may have set it or not.
    let builder = ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()?;
    let builder = if is_encrypted {
        builder.with_native_roots()?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}

/// Returns the innermost reason of an error. Those around it have the address, which may contain a password.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut reason = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    if reason.is::<reqwest::Error>() {
        return "the request failed".to_owned();
    }
    reason.to_string()
}
