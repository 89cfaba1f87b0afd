//! HTTP errors of the Gemini API.

use serde_json::{Value, json};

use super::super::Failure;
use crate::ErrorKind;

/// Returns an error in the service's format.
///
/// An exceeded rate per minute and an exhausted daily quota have the same status and message. Only the ids of
/// the limits in the details differ.
pub(super) fn failure(kind: ErrorKind, message: Option<&str>) -> Failure {
    let (code, status, usual, details) = match kind {
        ErrorKind::Authentication => (
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            invalid_key(),
        ),
        ErrorKind::Permission => (
            403,
            "PERMISSION_DENIED",
            "The caller does not have permission",
            Value::Null,
        ),
        ErrorKind::RateLimit => (
            429,
            "RESOURCE_EXHAUSTED",
            EXCEEDED,
            exceeded(
                "GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
                "10",
                "1s",
            ),
        ),
        ErrorKind::Quota => (
            429,
            "RESOURCE_EXHAUSTED",
            EXCEEDED,
            exceeded(
                "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
                "250",
                "40s",
            ),
        ),
        ErrorKind::Server => (
            500,
            "INTERNAL",
            "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting",
            Value::Null,
        ),
        ErrorKind::Overloaded => (
            503,
            "UNAVAILABLE",
            "The model is overloaded. Please try again later.",
            Value::Null,
        ),
        ErrorKind::UnknownModel => (
            404,
            "NOT_FOUND",
            "models/no-such-model is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.",
            Value::Null,
        ),
        ErrorKind::ContextTooLong => (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            Value::Null,
        ),
        ErrorKind::InvalidRequest => (
            400,
            "INVALID_ARGUMENT",
            "Request contains an invalid argument.",
            Value::Null,
        ),
    };
    let mut error = json!({
        "code": code,
        "message": message.unwrap_or(usual),
        "status": status,
    });
    if !details.is_null() {
        error["details"] = details;
    }
    Failure {
        status: code,
        body: json!({"error": error}),
    }
}

const EXCEEDED: &str = "You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.";

fn invalid_key() -> Value {
    json!([{
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID",
        "domain": "googleapis.com",
        "metadata": {"service": "generativelanguage.googleapis.com"},
    }])
}

/// Encodes the exceeded limit, its value and the delay before a retry.
fn exceeded(limit: &str, value: &str, delay: &str) -> Value {
    json!([
        {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{
                "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
                "quotaId": limit,
                "quotaDimensions": {"location": "global", "model": "mock-model"},
                "quotaValue": value,
            }],
        },
        {
            "@type": "type.googleapis.com/google.rpc.Help",
            "links": [{
                "description": "Learn more about Gemini API quotas",
                "url": "https://ai.google.dev/gemini-api/docs/rate-limits",
            }],
        },
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ])
}
