use super::*;

// Made by hand: no CLI here prints such a message, which services have for their newest models.
#[test]
fn a_newer_version_is_needed_for_a_model_or_for_something_else() {
    let of_model = Some(ErrorKind::ModelNotFound);
    for (message, expected) in [
        (
            "400 claude-opus-6 requires a newer version of Claude Code. Run `claude update`.",
            of_model,
        ),
        (
            "The 'gpt-6.1' model requires a newer version of Codex.",
            of_model,
        ),
        (
            "The model `next-2` requires a newer version of the CLI",
            of_model,
        ),
        ("gemini-4-pro requires a newer version", of_model),
        (
            r#"{"detail":"gpt-6.1 requires a newer version of Codex."}"#,
            of_model,
        ),
        (
            r#"API Error: 400 {"type":"error","message":"claude-opus-6 requires a newer version of Claude Code"}"#,
            of_model,
        ),
        (
            r#"{"error":"{\"message\":\"models/gemini-4-pro requires a newer version\"}"}"#,
            of_model,
        ),
        (
            "Error:\nclaude-opus-6 requires a newer version of Claude Code",
            of_model,
        ),
        ("o5-mini requires a newer version of Codex", of_model),
        ("o-ring2 requires a newer version of Python", None),
        ("MCP server tiny requires a newer version of Node.js", None),
        ("claude-tools requires a newer version of Python", None),
        (
            "The Model Context Protocol server requires a newer version of Node.js",
            None,
        ),
        (
            "connection refused: proxy-2 requires a newer version of TLS",
            Some(ErrorKind::Network),
        ),
        (" requires a newer version", None),
    ] {
        assert_eq!(ErrorKind::of_message(message), expected, "{message}");
    }
}

#[test]
fn each_status_of_a_failure_has_a_kind() {
    for (status, kind) in [
        (399, None),
        (400, Some(ErrorKind::Invalid)),
        (401, Some(ErrorKind::Auth)),
        (402, Some(ErrorKind::Quota)),
        (403, Some(ErrorKind::Auth)),
        (404, Some(ErrorKind::ModelNotFound)),
        (408, Some(ErrorKind::Network)),
        (429, Some(ErrorKind::RateLimit)),
        (499, Some(ErrorKind::Invalid)),
        (500, Some(ErrorKind::Overloaded)),
        (599, Some(ErrorKind::Overloaded)),
        (600, None),
    ] {
        assert_eq!(ErrorKind::of_http_status(status), kind, "{status}");
    }
}

#[test]
fn words_are_lower_case_and_each_can_be_found() {
    for (words, kind) in PATTERNS {
        assert_eq!(*words, words.to_lowercase());
        assert_eq!(ErrorKind::of_message(words), Some(*kind), "{words}");
    }
    for message in [
        "it rained",
        "billing address invalid",
        "see https://example.com/billing",
    ] {
        assert_eq!(ErrorKind::of_message(message), None, "{message}");
    }
}

// Made by hand, after the services' documented messages.
#[test]
fn messages_of_services_have_their_kind_with_any_status() {
    use ErrorKind::{Auth, ContextWindow, ModelNotFound, Network, Overloaded, Quota, RateLimit};
    for (message, kind) in [
        (
            "Rate limit reached for gpt-x on tokens per min: Limit 10000, Used 9000. Add a payment method at https://platform.openai.com/account/billing.",
            RateLimit,
        ),
        (
            "Rate limit reached for model `x` on tokens per day (TPD). Upgrade to Dev Tier today at https://console.groq.com/settings/billing",
            RateLimit,
        ),
        (
            "Your account is not active, please check your billing details on our website.",
            Quota,
        ),
        (
            r#"{"error":{"code":"billing_hard_limit_reached","message":"Billing hard limit has been reached"}}"#,
            Quota,
        ),
        (
            "User location is not supported for the API use without a billing account linked.",
            Quota,
        ),
        ("Project x has billing disabled. Please enable it.", Quota),
        (
            "Insufficient credits. Add more using https://openrouter.ai/settings/credits",
            Quota,
        ),
        (
            "Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys",
            Quota,
        ),
        ("Insufficient Balance", Quota),
        (
            "Your newly created team doesn't have any credits yet.",
            Quota,
        ),
        (
            "Your team has used all available credits or reached its monthly spending limit.",
            Quota,
        ),
        (
            "You hit your spend cap set by the owner of your workspace.",
            Quota,
        ),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            ContextWindow,
        ),
        (
            "the request exceeds the available context size, try increasing it",
            ContextWindow,
        ),
        (
            "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
            ContextWindow,
        ),
        ("Input is too long for requested model.", ContextWindow),
        (
            "prompt token count of 130000 exceeds the limit of 128000",
            ContextWindow,
        ),
        ("foo/bar is not a valid model ID", ModelNotFound),
        ("Model Not Exist", ModelNotFound),
        (
            "The model `x` has been decommissioned and is no longer supported.",
            ModelNotFound,
        ),
        ("This organization has been disabled.", Auth),
        ("OAuth token has expired. Please refresh it.", Auth),
        (
            "error sending request for url (https://example.com/responses)",
            Network,
        ),
        ("unable to verify the first certificate", Network),
        (
            "Client network socket disconnected before secure TLS connection was established",
            Network,
        ),
        (
            "Hostname/IP does not match certificate's altnames: Host: x. is not cert's CN: y",
            Network,
        ),
        ("The operation was aborted due to timeout", Network),
        (
            "An error occurred while processing your request. You can retry your request",
            Overloaded,
        ),
        (
            "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day",
            Quota,
        ),
        ("Rate limit exceeded: free-models-per-min.", RateLimit),
        (
            "Budget has been exceeded! Current cost: 10.1, Max budget: 10.0",
            Quota,
        ),
        (
            "Access denied, please make sure your account is in good standing.",
            Quota,
        ),
        (
            "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.",
            Quota,
        ),
        (
            "Server is temporarily limiting requests (not your usage limit) · Rate limited",
            RateLimit,
        ),
        ("You hit your usage limit", Quota),
        (
            "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
            ContextWindow,
        ),
        (
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
            ContextWindow,
        ),
        (
            "You passed 5001 input tokens. However, the model's context length is only 4096 tokens",
            ContextWindow,
        ),
        (
            "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
            ContextWindow,
        ),
        (
            "Invalid request: Your request exceeded model token limit: 262144",
            ContextWindow,
        ),
        (
            "prompt too long; exceeded max context length by 4 tokens",
            ContextWindow,
        ),
        (
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
            ContextWindow,
        ),
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193.",
            ContextWindow,
        ),
        ("The requested model is not supported.", ModelNotFound),
        (
            "You don't have access to the model with the specified model ID.",
            ModelNotFound,
        ),
        (
            "No models loaded. Please load a model in the developer page",
            ModelNotFound,
        ),
        (
            "Invocation of model ID x with on-demand throughput isn’t supported. Retry your request with the ID of an inference profile",
            ModelNotFound,
        ),
        (
            "RESOURCE_EXHAUSTED: Your prepayment credits are depleted. Please go to AI Studio",
            Quota,
        ),
        ("403 Insufficient account balance", Quota),
        ("Not enough credits available", Quota),
        (
            r#"{"type":"rate_limit_error","message":"Extra usage is required for long context requests."}"#,
            Quota,
        ),
        (
            "Third-party apps now draw from your extra usage, not your plan limits. Add more at claude.ai/settings/usage and keep going.",
            Quota,
        ),
        (
            "429 Usage credits are required for long context requests.",
            Quota,
        ),
        (
            "You're out of extra usage. Add more at claude.ai/settings/usage",
            Quota,
        ),
        (
            r#"{"code":"insufficient_credits","current_balance":-0.14,"message":"no"}"#,
            Quota,
        ),
        ("402 You have no quota (Request ID: x)", Quota),
        (
            "This request requires more credits, or fewer max_tokens. You can only afford 1324.",
            Quota,
        ),
        ("User location is not supported for the API use.", Auth),
        ("Resource exhausted. Please try again later.", RateLimit),
        (
            "No capacity available for model gemini-3.1-pro-preview on the server",
            Overloaded,
        ),
    ] {
        assert_eq!(ErrorKind::of_message(message), Some(kind), "{message}");
    }
}

// Made by hand: an MCP server or a file may have any name.
#[test]
fn words_in_paths_and_names_are_no_reasons() {
    for message in [
        "Invalid schema for function 'mcp__tracker__rate_limit': array schema missing items",
        "function `mcp__usage_limit__get` is unknown",
        "failed to read /home/x/usage_limit.md",
        "File not found: src/rate_limit.rs",
        "ENOENT: no such file or directory, open '/repo/overloaded/x.ts'",
        r#"{"message":"no","path":"/srv/overloaded"}"#,
    ] {
        assert_eq!(ErrorKind::of_message(message), None, "{message}");
    }
    for message in [
        "{'error': {'code': 'insufficient_quota'}}, see https://example.com/a",
        r#"{"error":{"type":"insufficient_quota"},"url":"https://example.com/a"}"#,
        "/responses: insufficient_quota",
        "insufficient_quota",
    ] {
        let kind = ErrorKind::of_message(message);
        assert_eq!(kind, Some(ErrorKind::Quota), "{message}");
    }
}

// Made by hand: messages whose words are near those of the list.
#[test]
fn messages_about_something_else_have_no_kind() {
    for message in [
        "Range of max_tokens should be [1, 8192]",
        "the prompt exceeds the margin",
        "The tool `x` is not supported.",
        "The budget of the file is 3",
        "location is not supported",
        "standing orders",
        "the credits of the film are depleted",
        "not enough credits for the degree",
        "the extra usage of the tool is 3",
        "This step requires more credits to the authors",
        "a queue with on-demand throughput",
        "The operation was aborted.",
        "the altnames of the certificate",
    ] {
        assert_eq!(ErrorKind::of_message(message), None, "{message}");
    }
}
