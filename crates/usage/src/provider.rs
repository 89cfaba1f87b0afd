//! The CLIs whose files are read.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::limits::ReadLimits;
use crate::locations::Locations;
use crate::source::{Sink, Source, Sources};
use crate::{claude, cline, codex, copilot, embedded, gemini, kilo, kimi, opencode, pi, qwen};

/// Defines the list of readers. The module with a provider's name has its details.
macro_rules! readers {
    ($($(#[$doc:meta])* $provider:ident in $module:ident,)*) => {
        /// A CLI whose files are read.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Provider {
            $($(#[$doc])* $provider,)*
        }

        impl Provider {
            /// All providers, in the order of their names.
            pub const ALL: [Self; [$(stringify!($module)),*].len()] = [$(Self::$provider),*];

            /// Returns the name of the provider in the rest of the workspace, such as `claude`.
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$provider => stringify!($module),)*
                }
            }

            /// Adds the files of this CLI in these locations: all, or those of the session that is set.
            pub(crate) fn sources(self, locations: &Locations, found: &mut Sources) {
                match self {
                    $(Self::$provider => $module::sources(locations, found),)*
                }
            }

            /// Reads a source from its start position.
            pub(crate) fn read(source: &Source, sink: &mut Sink<'_>) -> std::io::Result<()> {
                match source.provider {
                    $(Self::$provider => $module::read(source, sink),)*
                }
            }

            /// Returns the properties of the CLI's files.
            pub(crate) fn traits(self) -> Traits {
                match self {
                    $(Self::$provider => $module::TRAITS,)*
                }
            }
        }
    };
}

readers! {
    /// Claude Code.
    Claude in claude,
    /// Cline.
    Cline in cline,
    /// Codex.
    Codex in codex,
    /// GitHub Copilot CLI.
    Copilot in copilot,
    /// Gemini CLI.
    Gemini in gemini,
    /// Kilo.
    Kilo in kilo,
    /// Kimi Code.
    Kimi in kimi,
    /// OpenCode.
    OpenCode in opencode,
    /// Pi.
    Pi in pi,
    /// Qwen Code.
    Qwen in qwen,
    /// `teamster`'s own model loop.
    Embedded in embedded,
}

/// Properties of a CLI's files and its billing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traits {
    /// True if a file can be read from any position without its beginning.
    pub(crate) reads_on: bool,
    /// True if web searches are counted and paid for individually.
    pub(crate) pays_searches: bool,
    /// True if premium requests are counted instead of costs.
    pub(crate) premium_requests: bool,
    /// Reader of a subscription's limits, if the files have them.
    pub(crate) limits: Option<ReadLimits>,
}

impl Traits {
    pub(crate) const NONE: Self = Self {
        reads_on: false,
        pays_searches: false,
        premium_requests: false,
        limits: None,
    };
}

impl Provider {
    /// Adds the files of one session of this CLI, including its sub-agents.
    pub(crate) fn of_session(self, locations: &Locations, session: &str, found: &mut Sources) {
        // The id comes from outside and becomes part of a path.
        if session.is_empty() || Path::new(session).components().count() != 1 || session == ".." {
            return;
        }
        found.session = Some(session.to_owned());
        self.sources(locations, found);
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// Error of parsing an unknown provider's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider {0:?}: {known}", known = Provider::ALL.map(Provider::id).join(", "))]
pub struct UnknownProvider(String);

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        let found = Self::ALL.into_iter().find(|p| p.id() == name);
        found.ok_or_else(|| UnknownProvider(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_takes_the_names_of_all_readers() {
        assert_eq!(
            Provider::ALL.map(Provider::id),
            teamster_api::usage::PROVIDERS
        );
    }
}
