//! A spec as it is kept in the folder of its run.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use teamster_core::provider::without_credentials;
use teamster_core::{ImageSource, McpServer, McpTransport};

use crate::{Spec, Trusted, either, json_name};

/// Name of the callback among what is withheld.
const CALLBACK: &str = "callback";

/// Choice of the prompts that a kept spec has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum KeptTexts {
    /// The prompt and the system prompts are kept.
    #[default]
    All,
    /// They are withheld.
    WithoutPrompts,
}

/// The spec of a run or session, as its runner keeps it: without values that may be secret.
///
/// What is withheld is empty in the spec, and is named in [`withheld`](Self::withheld): a run of this spec needs it
/// from somewhere else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct KeptSpec {
    /// Version of the spec.
    pub version: u32,
    /// The spec: `run` has the body that starts a run, `session` that of a session. What was withheld is empty in it.
    #[schemars(
        with = "std::collections::BTreeMap<String, serde_json::Map<String, serde_json::Value>>"
    )]
    pub what: Spec,
    /// Names of what was withheld, such as `prompt`, `env.API_KEY` and `mcpServers.github.headers.Authorization`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// Digest of the prompts that were withheld, by which its runner's program tells whether another spec has the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts_digest: Option<String>,
    /// Warnings of the start, for a repetition of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Those of the warnings that a user who wants no others sees too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub important: Vec<String>,
}

impl KeptSpec {
    /// Withholds images, the values of environment variables and HTTP headers, addresses that may have a password or a key, and
    /// texts as `texts` has them.
    pub fn new(mut what: Spec, texts: KeptTexts) -> Self {
        let mut withheld = Vec::new();
        if texts == KeptTexts::WithoutPrompts {
            if let Spec::Run(spec) = &mut what {
                withhold(&mut spec.prompt, "prompt", &mut withheld);
            }
            either!(&mut what, spec => {
                let spec = &mut **spec;
                let texts = [&mut spec.system_prompt, &mut spec.append_system_prompt];
                for (text, name) in texts.into_iter().zip(["systemPrompt", "appendSystemPrompt"]) {
                    if let Some(text) = text {
                        withhold(text, name, &mut withheld);
                    }
                }
            });
        }
        if let Spec::Run(spec) = &mut what
            && !spec.images.is_empty()
        {
            // Their hashes tell whether another spec has the same.
            for image in &mut spec.images {
                if let ImageSource::Bytes(bytes) = &mut image.source {
                    *bytes = Sha256::digest(&*bytes).to_vec();
                }
            }
            withheld.push("images".to_owned());
        }
        let (callback, trusted) = callback_and_trusted(&mut what);
        if let Some(url) = callback
            && without_credentials(url) != *url
        {
            withhold(url, CALLBACK, &mut withheld);
        }
        withhold_values(trusted, &mut withheld);
        Self {
            version: Spec::VERSION,
            what,
            withheld,
            prompts_digest: None,
            warnings: Vec::new(),
            important: Vec::new(),
        }
    }

    /// Returns the spec without the part that no stranger may choose, and without its callback, of which the path
    /// alone may be a secret. What of them is set is named as withheld, such as `trusted.program`.
    #[must_use]
    pub fn for_strangers(mut self) -> Self {
        let (callback, trusted) = callback_and_trusted(&mut self.what);
        if callback.take().is_some() && !self.withheld.iter().any(|name| name == CALLBACK) {
            self.withheld.push(CALLBACK.to_owned());
        }
        let names = std::mem::take(trusted).names().into_iter();
        if let Spec::Run(spec) = &mut self.what {
            // Hashes in place of what they show.
            spec.images.clear();
        }
        // Values of these that were withheld go with the whole.
        self.withheld.retain(|name| {
            let field = name.split('.').next().unwrap_or_default();
            !["env", "mcpServers", "store"].contains(&field)
        });
        self.withheld
            .extend(names.map(|name| format!("trusted.{}", json_name(name))));
        // A short prompt could be guessed by it.
        self.prompts_digest = None;
        self
    }

    /// Returns whether prompts may be kept, also the first line as a title.
    pub fn keeps_prompts(&self) -> bool {
        self.prompts_digest.is_none() && !self.withheld.iter().any(|name| name == "prompt")
    }

    /// Returns the prompt of a run; `None` if it was withheld, and for a session.
    pub fn prompt(&self) -> Option<&str> {
        match &self.what {
            Spec::Run(spec) => Some(&*spec.prompt).filter(|prompt| !prompt.is_empty()),
            Spec::Session(_) => None,
        }
    }
}

/// Returns the parts of a spec that a run and a session both have and that may be secret.
fn callback_and_trusted(what: &mut Spec) -> (&mut Option<String>, &mut Trusted) {
    either!(what, spec => {
        let spec = &mut **spec;
        (&mut spec.callback, &mut spec.trusted)
    })
}

fn withhold(text: &mut String, name: &str, withheld: &mut Vec<String>) {
    if !text.is_empty() {
        text.clear();
        withheld.push(name.to_owned());
    }
}

fn withhold_values(trusted: &mut Trusted, withheld: &mut Vec<String>) {
    for (name, value) in &mut trusted.env {
        withhold(value, &format!("env.{name}"), withheld);
    }
    for McpServer {
        name: server,
        transport,
        ..
    } in &mut trusted.mcp_servers
    {
        let (kind, values) = match transport {
            McpTransport::Stdio { env, .. } => ("env", env),
            McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
                if without_credentials(url) != *url {
                    withhold(url, &format!("mcpServers.{server}.url"), withheld);
                }
                ("headers", headers)
            }
            _ => continue,
        };
        for (name, value) in values {
            let name = format!("mcpServers.{server}.{kind}.{name}");
            withhold(value, &name, withheld);
        }
    }
    // A path is no secret; the address of a database may have a password.
    if let Some(store) = trusted.store.as_mut().filter(|store| store.contains("://")) {
        withhold(store, "store", withheld);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RunSpec, SessionSpec};

    fn run() -> RunSpec {
        let mut run = RunSpec::new("claude", "the prompt");
        run.system_prompt = Some("be brief".to_owned());
        let trusted = &mut run.trusted;
        trusted.env.insert("API_KEY".into(), "secret-1".into());
        trusted.env.insert("EMPTY".into(), String::new());
        trusted.store = Some("postgres://me:secret-2@db/x".into());
        trusted.mcp_servers = vec![
            McpServer::stdio("s", "x", ["-y"]).env("K", "secret-3"),
            McpServer::http("h", "https://example.com").header("Authorization", "secret-4"),
            McpServer::http("q", "https://example.com/mcp?key=secret-5"),
        ];
        run
    }

    #[test]
    fn values_that_may_be_secret_are_named_and_not_kept() {
        let kept = KeptSpec::new(run().into(), KeptTexts::All);
        let text = serde_json::to_string(&kept).unwrap();
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(
            kept.withheld,
            [
                "env.API_KEY",
                "mcpServers.s.env.K",
                "mcpServers.h.headers.Authorization",
                "mcpServers.q.url",
                "store"
            ]
        );
        assert_eq!(kept.prompt(), Some("the prompt"));
        assert_eq!(serde_json::from_str::<KeptSpec>(&text).unwrap(), kept);
    }

    #[test]
    fn strangers_get_the_names_of_what_they_may_not_choose() {
        let mut run = run();
        run.trusted.extra_args = vec!["--key=secret-6".to_owned()];
        run.trusted.images = vec!["/a.png".into()];
        let mut kept = KeptSpec::new(run.into(), KeptTexts::WithoutPrompts);
        kept.prompts_digest = Some("d".to_owned());
        let shown = kept.for_strangers();
        assert_eq!(
            shown.withheld,
            [
                "prompt",
                "systemPrompt",
                "trusted.env",
                "trusted.extraArgs",
                "trusted.mcpServers",
                "trusted.images",
                "trusted.store"
            ]
        );
        let text = serde_json::to_string(&shown).unwrap();
        assert!(
            !text.contains("secret") && !text.contains("promptsDigest"),
            "{text}"
        );
    }

    #[test]
    fn a_callback_is_kept_without_a_secret_and_shown_to_no_stranger() {
        // Made by hand: the path of the first address is its secret, as of many webhooks.
        for (url, is_kept) in [
            ("https://hooks.example.com/services/T0/secret-7", true),
            ("https://me:secret-8@example.com/x", false),
            ("https://example.com/x?key=secret-9", false),
        ] {
            let mut run = RunSpec::new("claude", "p");
            run.callback = Some(url.to_owned());
            let mut session = SessionSpec::new("claude");
            session.callback = Some(url.to_owned());
            for spec in [Spec::from(run), Spec::from(session)] {
                let kept = KeptSpec::new(spec, KeptTexts::All);
                let text = serde_json::to_string(&kept).unwrap();
                assert_eq!(text.contains(url), is_kept, "{text}");
                assert_eq!(text.contains("secret"), is_kept, "{text}");
                assert_eq!(kept.withheld.is_empty(), is_kept, "{text}");
                let shown = kept.for_strangers();
                assert_eq!(shown.withheld, ["callback"]);
                let text = serde_json::to_string(&shown.what).unwrap();
                assert!(!text.contains("callback"), "{text}");
            }
        }
        let kept = KeptSpec::new(RunSpec::new("claude", "p").into(), KeptTexts::All);
        assert_eq!(kept.for_strangers().withheld, [""; 0]);
    }

    #[test]
    fn prompts_are_withheld_on_demand() {
        let kept = KeptSpec::new(run().into(), KeptTexts::WithoutPrompts);
        assert_eq!(kept.withheld[..2], ["prompt", "systemPrompt"]);
        assert_eq!(kept.prompt(), None);
        let text = serde_json::to_string(&kept).unwrap();
        assert!(
            !text.contains("the prompt") && !text.contains("be brief"),
            "{text}"
        );
    }
}
