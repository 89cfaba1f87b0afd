//! A collector that keeps what it receives.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message;

/// A collector on loopback. Its threads end with the test's process.
pub(crate) struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

/// A request.
struct Received {
    head: String,
    body: Vec<u8>,
}

/// A span, with the resource that it is of.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty for the root of a trace.
    pub(crate) parent: String,
    pub(crate) start_ms: u64,
    pub(crate) end_ms: u64,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) resource: BTreeMap<String, String>,
    has_failed: bool,
}

impl Span {
    /// Returns the type of the error; `None` if the span has none.
    pub(crate) fn error(&self) -> Option<&str> {
        let kind = self.attributes.get("error.type").map(String::as_str);
        assert_eq!(kind.is_some(), self.has_failed, "{self:?}");
        kind
    }
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let kept = received.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, kept) = (stream.unwrap(), kept.clone());
                thread::spawn(move || receive(&stream, &kept));
            }
        });
        Self { address, received }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the heads of all requests.
    pub(crate) fn heads(&self) -> Vec<String> {
        let received = self.received.lock().unwrap();
        received.iter().map(|it| it.head.clone()).collect()
    }

    /// Returns the bodies of all requests as text, as far as they are.
    pub(crate) fn bodies(&self) -> String {
        let received = self.received.lock().unwrap();
        let bodies = received.iter().map(|it| String::from_utf8_lossy(&it.body));
        bodies.collect()
    }

    /// Returns the newest value of a figure with these labels.
    pub(crate) fn figure(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let received = self.received.lock().unwrap();
        let newest = received
            .iter()
            .rfind(|it| it.head.starts_with("POST /v1/metrics "))?;
        let request = ExportMetricsServiceRequest::decode(&*newest.body).unwrap();
        let scopes = request.resource_metrics.into_iter();
        let scopes = scopes.flat_map(|of_resource| of_resource.scope_metrics);
        let mut metrics = scopes.flat_map(|of_scope| of_scope.metrics);
        let points = match metrics.find(|metric| metric.name == name)?.data? {
            Data::Gauge(gauge) => gauge.data_points,
            Data::Sum(sum) => {
                assert!(sum.is_monotonic);
                sum.data_points
            }
            other => panic!("{other:?}"),
        };
        let labels: BTreeMap<_, _> = (labels.iter())
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let mut points = points.into_iter();
        match points
            .find(|point| values(&point.attributes) == labels)?
            .value?
        {
            number_data_point::Value::AsDouble(value) => Some(value),
            number_data_point::Value::AsInt(value) => panic!("{value} is an integer"),
        }
    }

    /// Returns the spans, in the order of their starts.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let received = self.received.lock().unwrap();
        let mut spans = Vec::new();
        for it in received.iter() {
            if !it.head.starts_with("POST /v1/traces ") {
                continue;
            }
            let request = ExportTraceServiceRequest::decode(&*it.body).unwrap();
            for of_resource in request.resource_spans {
                let resource = of_resource.resource.unwrap_or_default();
                let resource = values(&resource.attributes);
                let sent = of_resource.scope_spans.into_iter();
                for span in sent.flat_map(|of_scope| of_scope.spans) {
                    let status = span.status.as_ref().map_or(0, |status| status.code);
                    spans.push(Span {
                        name: span.name,
                        trace: hex(&span.trace_id),
                        id: hex(&span.span_id),
                        parent: hex(&span.parent_span_id),
                        start_ms: span.start_time_unix_nano / 1_000_000,
                        end_ms: span.end_time_unix_nano / 1_000_000,
                        attributes: values(&span.attributes),
                        resource: resource.clone(),
                        has_failed: status == StatusCode::Error as i32,
                    });
                }
            }
        }
        spans.sort_by_key(|span| span.start_ms);
        spans
    }
}

/// Receives the requests of a connection.
fn receive(stream: &TcpStream, kept: &Mutex<Vec<Received>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or_default() == 0 {
                return;
            }
        }
        let lower = head.to_ascii_lowercase();
        let length = lower
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.unwrap().parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        // Kept before the response: the client may end with it.
        kept.lock().unwrap().push(Received { head, body });
        let response =
            "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        let mut stream = stream;
        if stream.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

fn values(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for attribute in attributes {
        let value = attribute.value.as_ref().map(text).unwrap_or_default();
        let before = values.insert(attribute.key.clone(), value);
        assert_eq!(before, None, "{} twice", attribute.key);
    }
    values
}

fn text(value: &AnyValue) -> String {
    match &value.value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        Some(Value::BoolValue(is)) => is.to_string(),
        Some(Value::ArrayValue(array)) => {
            let values: Vec<_> = array.values.iter().map(text).collect();
            values.join(",")
        }
        other => panic!("{other:?}"),
    }
}
