//! Names of models, and how they resolve to a service, an address and a key.

use std::net::Ipv6Addr;

use teamster_core::text::excerpt;
use teamster_core::{AgentError, ErrorCode, ErrorKind};

use crate::wire::WireKind;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Service {
    /// First part of a model's name, such as `anthropic`.
    pub(crate) id: &'static str,
    pub(crate) wire: WireKind,
    /// Base URL of the protocol's paths; `None` if the service has no default one.
    pub(crate) base_url: Option<&'static str>,
    /// Variables that override the base URL. The first one that is set counts.
    pub(crate) url_variables: &'static [&'static str],
    /// Variables that may have the key. The first one that is set counts.
    pub(crate) key_variables: &'static [&'static str],
    /// True if the service rejects requests without a key.
    pub(crate) needs_key: bool,
    pub(crate) usual_model: Option<&'static str>,
    /// Prefixes of model names that identify the service.
    pub(crate) prefixes: &'static [&'static str],
}

/// All services. Without a model's name, the first one with a key is used.
pub(crate) const SERVICES: &[Service] = &[
    Service {
        id: "anthropic",
        wire: WireKind::Anthropic,
        base_url: Some("https://api.anthropic.com"),
        url_variables: &["ANTHROPIC_BASE_URL"],
        key_variables: &["ANTHROPIC_API_KEY"],
        needs_key: true,
        usual_model: Some("claude-sonnet-4-5"),
        prefixes: &["claude-"],
    },
    Service {
        id: "openai",
        wire: WireKind::Responses,
        base_url: Some("https://api.openai.com/v1"),
        url_variables: &["OPENAI_BASE_URL"],
        key_variables: &["OPENAI_API_KEY"],
        needs_key: true,
        usual_model: Some("gpt-5.1"),
        prefixes: &["gpt-", "o1", "o3", "o4"],
    },
    Service {
        id: "gemini",
        wire: WireKind::Gemini,
        base_url: Some("https://generativelanguage.googleapis.com"),
        url_variables: &["GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL"],
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        needs_key: true,
        usual_model: Some("gemini-2.5-flash"),
        prefixes: &["gemini-"],
    },
    Service {
        id: "ollama",
        wire: WireKind::Chat,
        base_url: Some("http://127.0.0.1:11434/v1"),
        url_variables: &["OLLAMA_HOST"],
        key_variables: &["OLLAMA_API_KEY"],
        needs_key: false,
        usual_model: None,
        prefixes: &[],
    },
    Service {
        id: "openai-compatible",
        wire: WireKind::Chat,
        base_url: None,
        url_variables: &["OPENAI_COMPATIBLE_BASE_URL"],
        key_variables: &["OPENAI_COMPATIBLE_API_KEY"],
        needs_key: false,
        usual_model: None,
        prefixes: &[],
    },
];

/// A model at a service, with the data that a request needs.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) service: &'static Service,
    /// The service's name for the model.
    pub(crate) model: String,
    /// Base URL of the protocol's paths, without a trailing slash.
    pub(crate) base_url: String,
    pub(crate) key: Option<String>,
}

impl Target {
    /// Returns the model's full name, such as `openai/gpt-5.1`.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.service.id, self.model)
    }

    pub(crate) fn wire(&self) -> WireKind {
        self.service.wire
    }

    /// Returns the URL of a request. A query of the base URL, such as Azure's `api-version`, stays at the end.
    pub(crate) fn url(&self) -> String {
        let path = self.wire().wire().path(&self.model);
        match self.base_url.split_once('?') {
            Some((base, query)) => {
                let mark = if path.contains('?') { '&' } else { '?' };
                format!("{}{path}{mark}{query}", base.trim_end_matches('/'))
            }
            None => format!("{}{path}", self.base_url),
        }
    }
}

/// Splits a name such as `openai/gpt-5.1` into the service and the service's name for the model. A name without a
/// service belongs to `usual`.
pub(crate) fn parse<'n>(
    name: &'n str,
    usual: Option<&'static Service>,
) -> Result<(&'static Service, &'n str), AgentError> {
    let name = name.trim();
    if let Some((service, model)) = name.split_once('/')
        && let Some(service) = by_id(service)
    {
        if model.trim().is_empty() {
            let problem = format!("the model after `{}/` is missing", service.id);
            return Err(AgentError::refused("model", problem));
        }
        return Ok((service, model.trim()));
    }
    let begins = |service: &&Service| (service.prefixes.iter()).any(|it| name.starts_with(it));
    match usual.or_else(|| SERVICES.iter().find(begins)) {
        Some(service) => Ok((service, name)),
        None => {
            let known: Vec<_> = SERVICES
                .iter()
                .map(|service| format!("{}/MODEL", service.id))
                .collect();
            let shown = excerpt(name, 100);
            Err(AgentError::refused(
                "model",
                format!(
                    "`{shown}` names no service; write one of {}",
                    known.join(", ")
                ),
            ))
        }
    }
}

pub(crate) fn service(id: &str) -> Result<&'static Service, AgentError> {
    by_id(id.trim()).ok_or_else(|| {
        let known: Vec<_> = SERVICES.iter().map(|service| service.id).collect();
        let problem = format!(
            "unknown model provider `{}`; available: {}",
            excerpt(id, 100),
            known.join(", ")
        );
        AgentError::invalid_params(problem).about("model_provider")
    })
}

fn by_id(id: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|service| service.id == id)
}

/// Resolves service, address and key. `variable` looks up environment variables; `base_url` overrides them.
pub(crate) fn resolve(
    name: Option<&str>,
    usual_service: Option<&'static Service>,
    base_url: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Target, AgentError> {
    let first = |names: &[&str]| {
        let values = names.iter().filter_map(|name| variable(name));
        values
            .map(|value| value.trim().to_owned())
            .find(|value| !value.is_empty())
    };
    let (service, model) = match (name, usual_service) {
        (Some(name), _) => parse(name, usual_service)?,
        (None, Some(service)) => match service.usual_model {
            Some(model) => (service, model),
            None => {
                let problem = format!("name one of {}, such as {0}/MODEL", service.id);
                return Err(AgentError::refused("model", problem));
            }
        },
        (None, None) => usual(&|service| first(service.key_variables).is_some())?,
    };
    let key = first(service.key_variables);
    if service.needs_key && key.is_none() {
        return Err(AgentError::new(
            ErrorCode::CliError,
            ErrorKind::Auth,
            format!(
                "no key for {}: set {}",
                service.id,
                service.key_variables.join(" or ")
            ),
        ));
    }
    let url = base_url.map(str::to_owned);
    let url = url.or_else(|| first(service.url_variables).map(|url| as_url(service, url)));
    let Some(url) = url.or_else(|| service.base_url.map(str::to_owned)) else {
        return Err(AgentError::refused(
            "model",
            format!(
                "{} has no default address: set {} to that of the service, such as \
                 http://127.0.0.1:8000/v1",
                service.id,
                service.url_variables.join(" or ")
            ),
        ));
    };
    // A query stays as it is.
    let url = if url.contains('?') {
        &*url
    } else {
        url.trim_end_matches('/')
    };
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(AgentError::refused(
            "model",
            format!(
                "the address of {} must begin with http:// or https://",
                service.id
            ),
        ));
    }
    Ok(Target {
        service,
        model: model.to_owned(),
        base_url: url.to_owned(),
        key,
    })
}

/// Returns the base URL from a variable. `OLLAMA_HOST` is what Ollama itself takes: a host, an optional scheme, port and
/// path, and quotes around them. The others are URLs.
fn as_url(service: &Service, value: String) -> String {
    if service.id != "ollama" {
        return value;
    }
    let value = value.trim_matches(['"', '\'']);
    // With a scheme, the usual port is that of the scheme.
    let (scheme, rest, usual_port) = match value.split_once("://") {
        Some((scheme, rest)) => (scheme, rest, ""),
        None if value == "ollama.com" => ("https", value, ""),
        None => ("http", value, ":11434"),
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (name, port) = match host.rsplit_once(':') {
        _ if host.trim_matches(['[', ']']).parse::<Ipv6Addr>().is_ok() => (host, None),
        Some((name, port)) => (name, port.parse::<u16>().ok()),
        None => (host, None),
    };
    let name = match name.trim_matches(['[', ']']) {
        // Where a server listens on all addresses.
        "" | "0.0.0.0" => "127.0.0.1".to_owned(),
        "::" => "[::1]".to_owned(),
        name if name.contains(':') => format!("[{name}]"),
        name => name.to_owned(),
    };
    let port = port.map_or_else(|| usual_port.to_owned(), |port| format!(":{port}"));
    let path = path.trim_matches('/');
    let path = match path.strip_suffix("v1") {
        Some(above) if above.is_empty() || above.ends_with('/') => path.to_owned(),
        _ if path.is_empty() => "v1".to_owned(),
        _ => format!("{path}/v1"),
    };
    format!("{scheme}://{name}{port}/{path}")
}

/// Returns the first service with a key, and its default model.
fn usual(
    has_key: &dyn Fn(&Service) -> bool,
) -> Result<(&'static Service, &'static str), AgentError> {
    for service in SERVICES {
        if let Some(model) = service.usual_model
            && has_key(service)
        {
            return Ok((service, model));
        }
    }
    let keys: Vec<_> = (SERVICES.iter().filter(|service| service.needs_key))
        .filter_map(|service| service.key_variables.first())
        .copied()
        .collect();
    Err(AgentError::new(
        ErrorCode::CliError,
        ErrorKind::Auth,
        format!(
            "no model is named and there is no key: set {}, or name a model that needs none, such as \
             ollama/MODEL",
            keys.join(" or ")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: Option<&str>, set: &[(&str, &str)]) -> Result<String, String> {
        let variable = |name: &str| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        resolve(name, None, None, &variable)
            .map(|it| {
                let key = it.key.clone().unwrap_or_default();
                format!("{} {} {key}", it.name(), it.base_url)
            })
            .map_err(|error| error.message)
    }

    #[test]
    fn a_name_selects_the_vendor() {
        let of = |name| parse(name, None).map(|(service, model)| (service.id, model));
        assert_eq!(of("openai/gpt-5.1"), Ok(("openai", "gpt-5.1")));
        assert_eq!(of("claude-opus-4-8"), Ok(("anthropic", "claude-opus-4-8")));
        assert_eq!(
            of("ollama/library/llama3:8b"),
            Ok(("ollama", "library/llama3:8b"))
        );
        assert_eq!(
            of("openai-compatible/meta/llama"),
            Ok(("openai-compatible", "meta/llama"))
        );
        assert_eq!(
            of("llama3").unwrap_err().message,
            "model: `llama3` names no service; write one of anthropic/MODEL, \
             openai/MODEL, gemini/MODEL, ollama/MODEL, openai-compatible/MODEL"
        );
        assert_eq!(
            of("openai/").unwrap_err().message,
            "model: the model after `openai/` is missing"
        );
    }

    #[test]
    fn addresses_and_keys_come_from_the_environment() {
        let key = ("OPENAI_API_KEY", "k");
        assert_eq!(
            target(Some("openai/gpt-5.1"), &[key]).unwrap(),
            "openai/gpt-5.1 https://api.openai.com/v1 k"
        );
        let url = ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1/");
        assert_eq!(
            target(Some("openai/gpt-5.1"), &[key, url]).unwrap(),
            "openai/gpt-5.1 http://127.0.0.1:9/v1 k"
        );
        assert_eq!(
            target(Some("openai/gpt-5.1"), &[("OPENAI_API_KEY", " ")]).unwrap_err(),
            "no key for openai: set OPENAI_API_KEY"
        );
        assert!(
            target(Some("openai-compatible/x"), &[])
                .unwrap_err()
                .contains("set OPENAI_COMPATIBLE_BASE_URL")
        );
        let odd = ("OPENAI_COMPATIBLE_BASE_URL", "localhost:1");
        assert!(
            target(Some("openai-compatible/x"), &[odd])
                .unwrap_err()
                .contains("must begin with http://")
        );
    }

    #[test]
    fn without_a_model_the_first_service_with_a_key_is_asked() {
        assert_eq!(
            target(None, &[("GEMINI_API_KEY", "g"), ("OPENAI_API_KEY", "o")]).unwrap(),
            "openai/gpt-5.1 https://api.openai.com/v1 o"
        );
        assert!(
            target(None, &[])
                .unwrap_err()
                .contains("set ANTHROPIC_API_KEY or OPENAI_API_KEY or GEMINI_API_KEY")
        );
    }

    #[test]
    fn the_query_of_an_address_stays_at_its_end() {
        let url = |name: &str, base: &str| {
            let variable = |_: &str| Some("k".to_owned());
            resolve(Some(name), None, Some(base), &variable)
                .unwrap()
                .url()
        };
        for (name, base, expected) in [
            (
                "openai-compatible/m",
                "https://r.test/openai/v1?api-version=preview",
                "https://r.test/openai/v1/chat/completions?api-version=preview",
            ),
            (
                "openai-compatible/m",
                "https://r.test/v1/?a=/b/",
                "https://r.test/v1/chat/completions?a=/b/",
            ),
            (
                "gemini/m",
                "https://r.test?a=b",
                "https://r.test/v1beta/models/m:streamGenerateContent?alt=sse&a=b",
            ),
            (
                "openai/m",
                "https://r.test/v1/",
                "https://r.test/v1/responses",
            ),
        ] {
            assert_eq!(url(name, base), expected);
        }
    }

    #[test]
    fn the_host_of_ollama_is_no_address() {
        for (host, url) in [
            ("127.0.0.1", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0:99", "http://127.0.0.1:99/v1"),
            (
                "https://ollama.example.com",
                "https://ollama.example.com/v1",
            ),
            ("http://box:1/v1", "http://box:1/v1"),
            // As Ollama's `envconfig` reads them.
            ("http://box", "http://box/v1"),
            ("box/", "http://box:11434/v1"),
            (":11500", "http://127.0.0.1:11500/v1"),
            ("\"box:1\"", "http://box:1/v1"),
            ("box:none", "http://box:11434/v1"),
            ("::1", "http://[::1]:11434/v1"),
            ("[::]:1", "http://[::1]:1/v1"),
            ("ollama.com", "https://ollama.com/v1"),
            (
                "https://box.example/ollama/",
                "https://box.example/ollama/v1",
            ),
            ("http://box:1/apiv1", "http://box:1/apiv1/v1"),
        ] {
            let got = target(Some("ollama/x"), &[("OLLAMA_HOST", host)]).unwrap();
            assert_eq!(got, format!("ollama/x {url} "));
        }
        assert_eq!(
            target(Some("ollama/x"), &[]).unwrap(),
            "ollama/x http://127.0.0.1:11434/v1 "
        );
    }
}
