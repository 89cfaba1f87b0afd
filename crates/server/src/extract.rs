//! Extractors that reject with an error response.

use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Path as AxumPath, Query as AxumQuery, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use teamster_api::ProblemCode;
use tokio::time::timeout;

use crate::ApiError;

/// The maximum size of a body, in bytes.
pub(crate) const LARGEST_BODY: usize = 8 << 20;
/// The time limit for receiving a body.
const BODY_LIMIT: Duration = Duration::from_secs(30);

/// A JSON body, parsed and as raw bytes.
pub(crate) struct Json<T> {
    pub(crate) value: T,
    pub(crate) bytes: Bytes,
}

/// An optional JSON body.
pub(crate) struct Optional<T>(pub(crate) T);

/// A body of bytes.
pub(crate) struct Part(pub(crate) Vec<u8>);

/// Path parameters.
pub(crate) struct Path<T>(pub(crate) T);

/// Query parameters.
pub(crate) struct Query<T>(pub(crate) T);

async fn body(request: Request) -> Result<(Bytes, bool), ApiError> {
    let is_json = has_media(&request, "application/json");
    Ok((collected(request).await?, is_json))
}

fn has_media(request: &Request, expected: &str) -> bool {
    let media = request.headers().get(CONTENT_TYPE);
    let media = media
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case(expected)
}

async fn collected(request: Request) -> Result<Bytes, ApiError> {
    let body = Limited::new(request.into_body(), LARGEST_BODY).collect();
    let collected = timeout(BODY_LIMIT, body).await.map_err(|_| {
        let detail = format!("the body did not arrive within {BODY_LIMIT:?}");
        ApiError::new(ProblemCode::BodyTimeout, detail)
    })?;
    let collected = collected.map_err(|error| {
        if error.downcast_ref::<LengthLimitError>().is_some() {
            let detail = format!("the body has more than {} MiB", LARGEST_BODY >> 20);
            ApiError::new(ProblemCode::BodyTooLarge, detail)
        } else {
            ApiError::new(ProblemCode::InvalidBody, "the body is incomplete")
        }
    })?;
    Ok(collected.to_bytes())
}

fn parse<T: DeserializeOwned>(bytes: &[u8], is_json: bool) -> Result<T, ApiError> {
    if !is_json {
        // A form of another origin can send other types without a CORS preflight.
        return Err(ApiError::new(
            ProblemCode::UnsupportedMediaType,
            "send JSON with the header `Content-Type: application/json`",
        ));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let code = match error.inner().classify() {
            serde_json::error::Category::Data => ProblemCode::InvalidParams,
            _ => ProblemCode::InvalidBody,
        };
        // With the path of the field, if it is known.
        let (detail, problem) = (error.to_string(), error.inner().to_string());
        let field = detail.strip_suffix(&*problem);
        match field.and_then(|field| field.strip_suffix(": ")) {
            Some(field) if code == ProblemCode::InvalidParams => ApiError::refused(field, problem),
            _ => ApiError::new(code, detail),
        }
    })?;
    let end = deserializer.end();
    end.map_err(|error| ApiError::new(ProblemCode::InvalidBody, error.to_string()))?;
    Ok(value)
}

impl<T: DeserializeOwned> Json<T> {
    /// Reads a body that `is_signed` accepts; `None` if it does not. No other body is parsed.
    pub(crate) async fn signed(
        request: Request,
        is_signed: impl FnOnce(&[u8]) -> bool,
    ) -> Result<Option<Self>, ApiError> {
        let (bytes, is_json) = body(request).await?;
        if !is_signed(&bytes) {
            return Ok(None);
        }
        let value = parse(&bytes, is_json)?;
        Ok(Some(Self { value, bytes }))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let (bytes, is_json) = body(request).await?;
        let value = parse(&bytes, is_json)?;
        Ok(Self { value, bytes })
    }
}

impl<S: Send + Sync> FromRequest<S> for Part {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        if !has_media(&request, "application/octet-stream") {
            // A form of another origin can send other types without a CORS preflight.
            return Err(ApiError::new(
                ProblemCode::UnsupportedMediaType,
                "send bytes with the header `Content-Type: application/octet-stream`",
            ));
        }
        Ok(Self(collected(request).await?.into()))
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for Optional<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let (bytes, is_json) = body(request).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        parse(&bytes, is_json).map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match AxumPath::from_request_parts(parts, state).await {
            Ok(AxumPath(value)) => Ok(Self(value)),
            Err(error) => Err(ApiError::new(ProblemCode::NotFound, error.body_text())),
        }
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match AxumQuery::from_request_parts(parts, state).await {
            Ok(AxumQuery(value)) => Ok(Self(value)),
            Err(error) => Err(ApiError::new(ProblemCode::InvalidParams, error.body_text())),
        }
    }
}
