//! A request before it is sent: its path, query and body.

use std::slice;

use bytes::Bytes;
use hyper::Method;
use hyper::header::HeaderValue;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::Value;

use crate::error::ClientError;

/// The media type that a response must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    Stream,
    Text,
    Bytes,
}

impl Media {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Stream => "text/event-stream",
            Self::Text => "text/plain",
            Self::Bytes => "application/octet-stream",
        }
    }
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) media: Media,
    /// The value of `Idempotency-Key`.
    pub(crate) key: Option<HeaderValue>,
    pub(crate) body: Option<(Media, Bytes)>,
}

impl Call {
    /// Creates a request for JSON at the path of these segments below `/v1`.
    pub(crate) fn new(method: Method, segments: &[&str]) -> Result<Self, ClientError> {
        let mut target = "/v1".to_owned();
        for segment in segments {
            // A proxy may resolve dots, however they are encoded.
            if matches!(*segment, "" | "." | "..") {
                let message = format!("{segment:?} is not an id");
                return Err(ClientError::argument("id", message));
            }
            target.push('/');
            target.extend(utf8_percent_encode(segment, NON_ALPHANUMERIC));
        }
        Ok(Self {
            method,
            target,
            media: Media::Json,
            key: None,
            body: None,
        })
    }

    /// Returns whether a repetition has no effect beyond that of the first request.
    pub(crate) fn happens_once(&self) -> bool {
        self.key.is_some() || matches!(self.method, Method::GET | Method::PUT)
    }

    pub(crate) fn get(segments: &[&str]) -> Result<Self, ClientError> {
        Self::new(Method::GET, segments)
    }

    /// Creates a request with this body as JSON.
    pub(crate) fn post(segments: &[&str], body: &impl Serialize) -> Result<Self, ClientError> {
        Self::new(Method::POST, segments)?.with_body(body)
    }

    pub(crate) fn with_body(mut self, body: &impl Serialize) -> Result<Self, ClientError> {
        let json = serde_json::to_vec(body);
        let json = json.map_err(|error| ClientError::argument("body", error.to_string()))?;
        self.body = Some((Media::Json, json.into()));
        Ok(self)
    }

    pub(crate) fn with_bytes(mut self, body: Vec<u8>) -> Self {
        self.body = Some((Media::Bytes, body.into()));
        self
    }

    pub(crate) fn with_media(mut self, media: Media) -> Self {
        self.media = media;
        self
    }

    /// Adds the fields of `query` that are neither absent nor false.
    pub(crate) fn with_query(mut self, query: &impl Serialize) -> Result<Self, ClientError> {
        let fields = serde_json::to_value(query);
        let fields = fields.map_err(|error| ClientError::argument("query", error.to_string()))?;
        let mut separator = '?';
        for (name, value) in fields.as_object().into_iter().flatten() {
            // The values of a list are repeated.
            let values = value
                .as_array()
                .map_or(slice::from_ref(value), Vec::as_slice);
            for value in values {
                let value = match value {
                    Value::Null | Value::Bool(false) => continue,
                    Value::String(text) => text.clone(),
                    value => value.to_string(),
                };
                let value = utf8_percent_encode(&value, NON_ALPHANUMERIC);
                self.target.push(separator);
                self.target.push_str(name);
                self.target.push('=');
                self.target.extend(value);
                separator = '&';
            }
        }
        Ok(self)
    }

    /// Sets the key with which a repeated request has no effect.
    pub(crate) fn with_key(mut self, key: &str) -> Result<Self, ClientError> {
        let is_valid = key.bytes().all(|byte| matches!(byte, b' '..=b'~'))
            && !key.is_empty()
            && key.trim().len() == key.len();
        let value = HeaderValue::from_str(key).ok().filter(|_| is_valid);
        self.key = Some(value.ok_or_else(|| {
            ClientError::argument(
                "key",
                "the idempotency key is empty or has characters that a header cannot have: use printable ASCII",
            )
        })?);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_one_segment_and_absent_fields_are_left_out() {
        let call = Call::get(&["runs", "a/b ü?", "events"]).unwrap();
        assert_eq!(call.target, "/v1/runs/a%2Fb%20%C3%BC%3F/events");
        let query = serde_json::json!({"after": 3, "live": true, "no": false, "none": null, "cwd": "/a b&", "path": ["x", "y"]});
        let call = Call::get(&["runs"]).unwrap().with_query(&query).unwrap();
        assert_eq!(
            call.target,
            "/v1/runs?after=3&live=true&cwd=%2Fa%20b%26&path=x&path=y"
        );
        for id in ["", ".", ".."] {
            let error = Call::get(&["runs", id]).unwrap_err();
            assert_eq!(error.parameter.as_deref(), Some("id"), "{error}");
        }
    }

    #[test]
    fn only_a_key_that_is_a_header_is_sent() {
        let call = || Call::get(&["runs"]).unwrap();
        assert!(call().with_key("nightly 2026-11-28").is_ok());
        for key in ["", " a", "a\nb", "ü"] {
            let error = call().with_key(key).unwrap_err();
            assert_eq!(error.parameter.as_deref(), Some("key"), "{key:?}");
        }
    }
}
