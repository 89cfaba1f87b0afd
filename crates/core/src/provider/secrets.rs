//! Removal of secrets from text.

use std::fmt;

use crate::provider::without_credentials;
use crate::{McpServer, McpTransport};

/// Minimum length of a secret, in bytes. Shorter values are more likely numbers or words.
const SHORTEST: usize = 6;

/// Values of MCP servers that may be secret. CLIs print URLs and the output of broken servers.
///
/// ```
/// use teamster_core::McpServer;
/// use teamster_core::provider::Secrets;
///
/// let server = McpServer::stdio("tracker", "tracker-mcp", ["-v"]).env("TOKEN", "sk-123456");
/// let secrets = Secrets::of(&[server]);
/// assert_eq!(secrets.hide("sk-123456 is no token".to_owned()), "… is no token");
/// ```
#[derive(Clone, Default)]
pub struct Secrets {
    /// Secrets and their replacements, longest first.
    known: Vec<(String, String)>,
}

impl Secrets {
    /// Collects the secrets of servers: values of variables and headers, and secret parts of addresses.
    pub fn of<'a>(servers: impl IntoIterator<Item = &'a McpServer>) -> Self {
        let mut known = Vec::new();
        for server in servers {
            let values = match &server.transport {
                McpTransport::Stdio { env, .. } => env,
                McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
                    let shown = without_credentials(url);
                    if shown != *url {
                        known.push((url.clone(), shown));
                    }
                    headers
                }
            };
            for value in values.values() {
                // For `Bearer TOKEN`, also the token alone.
                let words = value.split_once(' ').map(|(_, word)| word);
                let secrets = words.into_iter().chain([value.as_str()]);
                let secrets = secrets.map(str::trim).filter(|it| it.len() >= SHORTEST);
                known.extend(secrets.map(|secret| (secret.to_owned(), "…".to_owned())));
            }
        }
        known.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        Self { known }
    }

    /// Adds another secret, such as a key.
    #[must_use]
    pub fn and(mut self, secret: &str) -> Self {
        let secret = secret.trim();
        if secret.len() >= SHORTEST {
            self.known.push((secret.to_owned(), "…".to_owned()));
            self.known
                .sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        }
        self
    }

    /// Returns the text with the secrets replaced.
    pub fn hide(&self, mut text: String) -> String {
        for (secret, shown) in &self.known {
            if text.contains(secret) {
                text = text.replace(secret, shown);
            }
        }
        text
    }

    /// Replaces the secrets in a text.
    pub(crate) fn hide_in(&self, text: &mut String) {
        if !self.known.is_empty() {
            *text = self.hide(std::mem::take(text));
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.known.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_addresses_are_not_shown_and_short_words_are() {
        let secrets = Secrets::of(&[
            McpServer::stdio("a", "cmd", ["x"])
                .env("A", "secret-1")
                .env("B", "secret-1-and-more")
                .env("C", "true"),
            McpServer::http("b", "https://h/p?pat=1").header("Authorization", "Bearer secret-2"),
        ]);
        let hide = |text: &str| secrets.hide(text.to_owned());
        assert_eq!(hide("secret-1-and-more, secret-1, true"), "…, …, true");
        assert_eq!(
            hide("no https://h/p?pat=1: secret-2"),
            "no https://h/p?…: …"
        );
        assert_eq!(hide("Bearer secret-2"), "…");
        assert_eq!(format!("{secrets:?}"), "5 secrets");
    }

    #[test]
    fn the_shortest_secret_has_six_bytes() {
        let server = McpServer::stdio("a", "cmd", ["x"])
            .env("A", "12345")
            .env("B", "abcdef");
        let secrets = Secrets::of(&[server]).and("vwxyz").and(" uvwxyz\n");
        let hidden = secrets.hide("12345 abcdef vwxyz uvwxyz".to_owned());
        assert_eq!(hidden, "12345 … vwxyz …");
    }
}
