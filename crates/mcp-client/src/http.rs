//! Transport to servers at an address: Streamable HTTP.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use hyper_rustls::ConfigBuilderExt;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rustls::crypto::ring;

use crate::error::{ClientError, Method};
use crate::output::text;

/// Creates the transport to a server at this address. It connects when the first message is sent.
pub(crate) fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
    connect_limit: Duration,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, ClientError> {
    let unreachable = |error: &(dyn Error + 'static)| ClientError::Unreachable {
        message: innermost(error),
    };
    // The process's default provider is not used, because an application may have set it or not.
    let tls = rustls::ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .map_err(|error| unreachable(&error))?
        .with_native_roots()
        .map_err(|error| unreachable(&error))?
        .with_no_client_auth();
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(connect_limit)
        // A redirect would send the headers, with their secrets, to another host.
        .redirect(Policy::none())
        .build()
        .map_err(|error| unreachable(&error))?;
    let headers = headers.iter().map(header).collect::<Result<_, _>>()?;
    let config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(headers);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Converts a header. Its value is hidden in logs.
fn header((name, value): (&String, &String)) -> Result<(HeaderName, HeaderValue), ClientError> {
    let invalid = || ClientError::InvalidHeader { name: name.clone() };
    let mut value = HeaderValue::try_from(value).map_err(|_| invalid())?;
    value.set_sensitive(true);
    let name = HeaderName::try_from(name).map_err(|_| invalid())?;
    Ok((name, value))
}

/// Returns the error of an HTTP request, or `None` for another error.
pub(crate) fn failure(method: Method, error: &(dyn Error + 'static)) -> Option<ClientError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            return Some(of_http(method, error));
        }
        next = error.source();
    }
    None
}

fn of_http(method: Method, error: &StreamableHttpError<reqwest::Error>) -> ClientError {
    match error {
        StreamableHttpError::Client(error) => ClientError::Unreachable {
            message: innermost(error),
        },
        StreamableHttpError::AuthRequired(_) => ClientError::Unauthorized { status: 401 },
        StreamableHttpError::InsufficientScope(_) => ClientError::Unauthorized { status: 403 },
        StreamableHttpError::ReservedHeaderConflict(name) => {
            ClientError::InvalidHeader { name: name.clone() }
        }
        other => ClientError::Http {
            method,
            message: text(&other.to_string()),
        },
    }
}

/// Returns the message of the innermost error, which is the cause, such as `Connection refused`. The outer ones repeat
/// the address.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    text(&last.to_string())
}

#[cfg(test)]
mod tests;
