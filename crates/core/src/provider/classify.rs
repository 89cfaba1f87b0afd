//! Classification of error messages of model services.
//!
//! Every CLI prints the service's message, some without any other information. A provider has the phrases of its
//! own CLI.

use crate::ErrorKind;

/// Phrases of model services, of gateways and of common HTTP clients, in lower case. More specific ones come first.
const PATTERNS: &[(&str, ErrorKind)] = &[
    ("insufficient_quota", ErrorKind::Quota),
    ("exceeded your current quota", ErrorKind::Quota),
    ("exceeded_current_quota", ErrorKind::Quota),
    ("quota exceeded", ErrorKind::Quota),
    ("quota_exceeded", ErrorKind::Quota),
    ("credit balance", ErrorKind::Quota),
    // OpenRouter's, Cline's, DeepSeek's and xAI's; some have the status of a failed login.
    ("insufficient credit", ErrorKind::Quota),
    ("insufficient_credits", ErrorKind::Quota),
    ("not enough credits available", ErrorKind::Quota),
    ("insufficient balance", ErrorKind::Quota),
    ("insufficient account balance", ErrorKind::Quota),
    ("request requires more credits", ErrorKind::Quota),
    // Gemini's, with status 429.
    ("prepayment credits are depleted", ErrorKind::Quota),
    ("out of credits", ErrorKind::Quota),
    ("all available credits", ErrorKind::Quota),
    ("have any credits", ErrorKind::Quota),
    ("key limit exceeded", ErrorKind::Quota),
    // GitHub's.
    ("you have no quota", ErrorKind::Quota),
    ("spend limit", ErrorKind::Quota),
    ("spending limit", ErrorKind::Quota),
    ("spend cap", ErrorKind::Quota),
    ("spending cap", ErrorKind::Quota),
    // OpenRouter's free models, LiteLLM's budgets, DashScope's overdue payment.
    ("free-models-per-day", ErrorKind::Quota),
    ("budget has been exceeded", ErrorKind::Quota),
    ("budget_exceeded", ErrorKind::Quota),
    ("exceededbudget", ErrorKind::Quota),
    ("account is in good standing", ErrorKind::Quota),
    // Anthropic's, with status 429 or 400, about what a plan does not include.
    ("extra usage is required for", ErrorKind::Quota),
    ("usage credits are required for", ErrorKind::Quota),
    ("out of extra usage", ErrorKind::Quota),
    ("apps now draw from your extra usage", ErrorKind::Quota),
    // Of a ChatGPT plan without Codex, from Codex and from OpenCode.
    ("to use codex with your chatgpt plan", ErrorKind::Quota),
    // Claude Code's, about the service.
    ("not your usage limit", ErrorKind::RateLimit),
    ("usage limit", ErrorKind::Quota),
    ("usage_limit", ErrorKind::Quota),
    ("monthly quota", ErrorKind::Quota),
    ("daily quota", ErrorKind::Quota),
    ("monthly limit", ErrorKind::Quota),
    ("weekly limit", ErrorKind::Quota),
    ("daily limit", ErrorKind::Quota),
    ("perday", ErrorKind::Quota),
    // Anthropic's and OpenAI's types, OpenAI's and Google's words. The word alone is also in links that rate limits name.
    ("billing_error", ErrorKind::Quota),
    ("billing_not_active", ErrorKind::Quota),
    ("billing_hard_limit", ErrorKind::Quota),
    ("billing hard limit", ErrorKind::Quota),
    ("billing details", ErrorKind::Quota),
    ("plans & billing", ErrorKind::Quota),
    ("plans and billing", ErrorKind::Quota),
    ("billing account", ErrorKind::Quota),
    ("billing disabled", ErrorKind::Quota),
    ("billing to be enabled", ErrorKind::Quota),
    ("enable billing", ErrorKind::Quota),
    ("context_length_exceeded", ErrorKind::ContextWindow),
    ("maximum context length", ErrorKind::ContextWindow),
    ("context window", ErrorKind::ContextWindow),
    ("prompt is too long", ErrorKind::ContextWindow),
    ("prompt as too long", ErrorKind::ContextWindow),
    (
        "exceeds the maximum number of tokens",
        ErrorKind::ContextWindow,
    ),
    // Anthropic's with `max_tokens`, llama.cpp's, xAI's, Bedrock's, GitHub's.
    ("exceed context limit", ErrorKind::ContextWindow),
    ("available context size", ErrorKind::ContextWindow),
    ("exceed_context_size", ErrorKind::ContextWindow),
    ("maximum prompt length", ErrorKind::ContextWindow),
    ("input is too long", ErrorKind::ContextWindow),
    ("prompt token count", ErrorKind::ContextWindow),
    // LM Studio's, vLLM's, SGLang's.
    ("greater than the context length", ErrorKind::ContextWindow),
    ("context length of only", ErrorKind::ContextWindow),
    ("context length is only", ErrorKind::ContextWindow),
    (
        "longer than the maximum model length",
        ErrorKind::ContextWindow,
    ),
    (
        "longer than the model's context length",
        ErrorKind::ContextWindow,
    ),
    // Ollama's, Kimi's, Z.ai's, DashScope's, that of Text Generation Inference.
    ("prompt too long; exceeded", ErrorKind::ContextWindow),
    ("exceeded model token limit", ErrorKind::ContextWindow),
    ("prompt exceeds max length", ErrorKind::ContextWindow),
    ("range of input length should be", ErrorKind::ContextWindow),
    (
        "`inputs` tokens + `max_new_tokens` must be",
        ErrorKind::ContextWindow,
    ),
    ("model_not_found", ErrorKind::ModelNotFound),
    ("model not found", ErrorKind::ModelNotFound),
    ("model_not_supported", ErrorKind::ModelNotFound),
    // OpenRouter's, DeepSeek's, LiteLLM's, Groq's.
    ("is not a valid model", ErrorKind::ModelNotFound),
    ("no endpoints found", ErrorKind::ModelNotFound),
    ("model not exist", ErrorKind::ModelNotFound),
    ("invalid model name", ErrorKind::ModelNotFound),
    ("has been decommissioned", ErrorKind::ModelNotFound),
    // GitHub's, LM Studio's, Bedrock's.
    ("requested model is not supported", ErrorKind::ModelNotFound),
    ("no models loaded", ErrorKind::ModelNotFound),
    (
        "provided model identifier is invalid",
        ErrorKind::ModelNotFound,
    ),
    (
        "access to the model with the specified model id",
        ErrorKind::ModelNotFound,
    ),
    // Bedrock's, of a model that needs an inference profile.
    ("with on-demand throughput isn", ErrorKind::ModelNotFound),
    // OpenAI's, with status 404.
    (
        "does not exist or you do not have access to it",
        ErrorKind::ModelNotFound,
    ),
    // Azure's, with status 404.
    (
        "deployment for this resource does not exist",
        ErrorKind::ModelNotFound,
    ),
    ("invalid x-api-key", ErrorKind::Auth),
    ("invalid api key", ErrorKind::Auth),
    ("incorrect api key", ErrorKind::Auth),
    ("api key not valid", ErrorKind::Auth),
    ("api_key_invalid", ErrorKind::Auth),
    ("authentication_error", ErrorKind::Auth),
    ("unauthorized", ErrorKind::Auth),
    ("permission_denied", ErrorKind::Auth),
    ("permission_error", ErrorKind::Auth),
    ("no auth credentials", ErrorKind::Auth),
    ("invalid bearer token", ErrorKind::Auth),
    ("invalid authentication", ErrorKind::Auth),
    ("token has expired", ErrorKind::Auth),
    ("api key expired", ErrorKind::Auth),
    ("bad credentials", ErrorKind::Auth),
    // Anthropic's, with status 400, and OpenAI's.
    ("organization has been disabled", ErrorKind::Auth),
    ("account has been deactivated", ErrorKind::Auth),
    // Gemini's, with status 400.
    ("user location is not supported", ErrorKind::Auth),
    // Anthropic's and OpenAI's, with status 403.
    ("api key does not have permission", ErrorKind::Auth),
    (
        "insufficient permissions for this operation",
        ErrorKind::Auth,
    ),
    ("rate_limit", ErrorKind::RateLimit),
    ("rate limit", ErrorKind::RateLimit),
    ("too many requests", ErrorKind::RateLimit),
    ("resource_exhausted", ErrorKind::RateLimit),
    ("resource exhausted", ErrorKind::RateLimit),
    ("overloaded", ErrorKind::Overloaded),
    ("at capacity", ErrorKind::Overloaded),
    // Of Google's Code Assist.
    ("no capacity available", ErrorKind::Overloaded),
    ("high demand", ErrorKind::Overloaded),
    ("internal server error", ErrorKind::Overloaded),
    // OpenAI's, with status 500.
    ("the server had an error", ErrorKind::Overloaded),
    (
        "an error occurred while processing your request",
        ErrorKind::Overloaded,
    ),
    ("service unavailable", ErrorKind::Overloaded),
    ("bad gateway", ErrorKind::Overloaded),
    ("gateway timeout", ErrorKind::Overloaded),
    ("gateway time-out", ErrorKind::Overloaded),
    ("econnrefused", ErrorKind::Network),
    ("econnreset", ErrorKind::Network),
    ("enotfound", ErrorKind::Network),
    ("etimedout", ErrorKind::Network),
    ("eai_again", ErrorKind::Network),
    ("fetch failed", ErrorKind::Network),
    ("socket hang up", ErrorKind::Network),
    // Bun's, as of a model service that closes the connection in the middle of an answer.
    ("socket connection was closed", ErrorKind::Network),
    ("connection refused", ErrorKind::Network),
    ("connection reset", ErrorKind::Network),
    ("connection failed", ErrorKind::Network),
    // Of the clients that Anthropic and OpenAI publish.
    ("connection error", ErrorKind::Network),
    ("cannot connect", ErrorKind::Network),
    ("could not connect", ErrorKind::Network),
    ("unable to connect", ErrorKind::Network),
    ("network error", ErrorKind::Network),
    ("connection timed out", ErrorKind::Network),
    ("request timed out", ErrorKind::Network),
    // The Rust client's, before the address.
    ("error sending request", ErrorKind::Network),
    // Node's.
    ("other side closed", ErrorKind::Network),
    ("premature close", ErrorKind::Network),
    ("headers timeout error", ErrorKind::Network),
    ("body timeout error", ErrorKind::Network),
    ("connect timeout error", ErrorKind::Network),
    ("aborted due to timeout", ErrorKind::Network),
    ("ehostunreach", ErrorKind::Network),
    ("enetunreach", ErrorKind::Network),
    ("before secure tls connection", ErrorKind::Network),
    // Node's, about the certificate of a proxy.
    ("unable to verify the first", ErrorKind::Network),
    ("unable to get local issuer", ErrorKind::Network),
    ("self-signed certificate", ErrorKind::Network),
    ("self signed certificate", ErrorKind::Network),
    ("certificate has expired", ErrorKind::Network),
    ("certificate is not yet valid", ErrorKind::Network),
    ("match certificate's altnames", ErrorKind::Network),
];

/// Text after the name of a model that only newer versions of the CLI may use.
const NEEDS_NEWER_CLI: &str = " requires a newer version";
/// Beginnings of the names of these services' models.
const MODELS: &[&str] = &["claude-", "gpt-", "gemini-"];

impl ErrorKind {
    /// Classifies an HTTP status of a model service; `None` if it is not a failure.
    ///
    /// ```
    /// use teamster_core::ErrorKind;
    /// assert_eq!(ErrorKind::of_http_status(529), Some(ErrorKind::Overloaded));
    /// assert_eq!(ErrorKind::of_http_status(200), None);
    /// ```
    pub fn of_http_status(status: u16) -> Option<Self> {
        Some(match status {
            401 | 403 => Self::Auth,
            402 => Self::Quota,
            404 => Self::ModelNotFound,
            408 => Self::Network,
            429 => Self::RateLimit,
            400..=499 => Self::Invalid,
            500..=599 => Self::Overloaded,
            _ => return None,
        })
    }

    /// Classifies a message of a model service by its words. They can be more specific than the status: 400 may be a
    /// context that is too long, and 429 an exhausted quota.
    ///
    /// ```
    /// use teamster_core::ErrorKind;
    /// let message = "Error code: 429 - You exceeded your current quota";
    /// assert_eq!(ErrorKind::of_message(message), Some(ErrorKind::Quota));
    /// ```
    pub fn of_message(message: &str) -> Option<Self> {
        let message = message.to_lowercase();
        if is_about_a_newer_model(&message) {
            return Some(Self::ModelNotFound);
        }
        Self::by_patterns(&without_names(&message), PATTERNS)
    }

    /// Classifies a text by the first of these patterns that it contains.
    pub fn by_patterns(text: &str, patterns: &[(&str, Self)]) -> Option<Self> {
        patterns
            .iter()
            .find(|(words, _)| text.contains(words))
            .map(|(_, kind)| *kind)
    }
}

/// Returns a message without paths, addresses and the names of MCP tools, whose words are no reasons.
fn without_names(message: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || "\"'`,;{}()[]<>|=".contains(c);
    let rest = |part: &str| {
        let word = part.trim_end_matches(is_end);
        let is_name = word.contains('/') || word.contains("__");
        if is_name { word.len() } else { 0 }
    };
    let parts = message.split_inclusive(is_end);
    parts.map(|part| &part[rest(part)..]).collect()
}

/// Returns whether a message in lower case is about a model that needs a newer version of the CLI. The same words in
/// messages of tools and MCP servers are about other programs.
fn is_about_a_newer_model(message: &str) -> bool {
    let Some((subject, _)) = message.split_once(NEEDS_NEWER_CLI) else {
        return false;
    };
    // The message may be the service's JSON.
    let is_end = |c: char| c.is_whitespace() || "\"'`()\\/:=".contains(c);
    let mut words = subject.rsplit(is_end).filter(|word| !word.is_empty());
    let (last, before) = (words.next().unwrap_or_default(), words.next());
    let has_number = last.contains(|c: char| c.is_ascii_digit());
    // OpenAI's `o3` and its like.
    let is_o = |name: &str| {
        let number = name.strip_prefix('o');
        number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let is_named =
        before == Some("model") || is_o(last) || MODELS.iter().any(|name| last.starts_with(name));
    last == "model" || has_number && is_named
}

#[cfg(test)]
mod tests;
