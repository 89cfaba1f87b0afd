//! The parameters of a run that not every provider has: one table for their refusal and for fallbacks.

use serde_json::Value;

use crate::{Capabilities, ExecuteParams};

/// A parameter of a run that not every provider has.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) is_set: fn(&ExecuteParams) -> bool,
    /// Whether it is a blank text.
    pub(crate) is_blank: fn(&ExecuteParams) -> bool,
    pub(crate) is_supported: fn(&Capabilities) -> bool,
    pub(crate) elsewhere: Elsewhere,
    pub(crate) clear: fn(&mut ExecuteParams),
}

/// What becomes of a parameter when the run goes to another provider.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    /// It means the same for every provider.
    Kept,
    /// It means the same, and the run can go without it.
    KeptIfSupported,
    /// Its value is in the words of one provider, and the run can go without it.
    LeftOut,
    /// It belongs to the session, which another provider does not have.
    Session,
}

/// The value of a parameter.
trait Setting: Default {
    fn is_set(&self) -> bool;

    fn is_blank(&self) -> bool {
        false
    }
}

impl Setting for bool {
    fn is_set(&self) -> bool {
        *self
    }
}

impl<T> Setting for Vec<T> {
    fn is_set(&self) -> bool {
        !self.is_empty()
    }
}

impl Setting for Option<String> {
    fn is_set(&self) -> bool {
        self.is_some()
    }

    fn is_blank(&self) -> bool {
        self.as_deref().is_some_and(|text| text.trim().is_empty())
    }
}

macro_rules! settings {
    ($($value:ty),*) => {
        $(impl Setting for Option<$value> {
            fn is_set(&self) -> bool {
                self.is_some()
            }
        })*
    };
}

settings!(u32, f64, Value);

macro_rules! parameters {
    ($($name:ident: $supported:expr, $elsewhere:ident;)*) => {
        &[$(Parameter {
            name: stringify!($name),
            is_set: |params| params.$name.is_set(),
            is_blank: |params| params.$name.is_blank(),
            is_supported: $supported,
            elsewhere: Elsewhere::$elsewhere,
            clear: |params| params.$name = Default::default(),
        }),*]
    };
}

/// The parameters that not every provider has, or that not every provider understands the same way.
pub(crate) const PARAMETERS: &[Parameter] = parameters! {
    session_id: |can| can.resume, Session;
    fork: |can| can.fork, Session;
    new_session_id: |can| can.new_session_id, Session;
    slash_commands: |can| can.slash_commands, Kept;
    add_dirs: |can| can.add_dirs, Kept;
    skills: |can| can.skills, Kept;
    sub_agents: |can| can.sub_agents, LeftOut;
    hooks: |can| can.hooks, Kept;
    model: |can| can.model, LeftOut;
    effort: |can| can.effort, LeftOut;
    fallback_model: |can| can.fallback_model, LeftOut;
    allowed_tools: |can| can.allowed_tools, LeftOut;
    denied_tools: |can| can.denied_tools, Kept;
    title: |can| can.title, KeptIfSupported;
    max_turns: |can| can.max_turns, Kept;
    max_budget_usd: |can| can.max_budget_usd, Kept;
    output_schema: |can| can.output_schema, Kept;
    usage_updates: |can| can.live_usage, Kept;
    images: |can| can.images, Kept;
    cli_retries: |can| can.cli_retries, KeptIfSupported;
    extra_args: |_| true, LeftOut;
};

impl ExecuteParams {
    /// Returns these parameters for the same task with another provider: those that mean the same for every provider.
    /// The model, the effort, the session, the sub-agents, the allowed tools and the extra arguments are left out, and
    /// what the run can go without if this provider does not have it ([`lacks`](Self::lacks)). The policy for
    /// permission requests is kept: without it the run would have other rights, so a provider whose sessions do not ask
    /// refuses it.
    #[must_use]
    pub fn for_other_provider(&self, can: &Capabilities) -> Self {
        let mut params = self.clone();
        for parameter in PARAMETERS {
            let is_kept = match parameter.elsewhere {
                Elsewhere::Kept => true,
                Elsewhere::KeptIfSupported => (parameter.is_supported)(can),
                Elsewhere::LeftOut | Elsewhere::Session => false,
            };
            if !is_kept {
                (parameter.clear)(&mut params);
            }
        }
        params
    }

    /// Returns the names of the parameters in `other` that these lack and a run can go without, sessions excluded.
    pub fn lacks(&self, other: &Self) -> Vec<&'static str> {
        let lacking = PARAMETERS.iter().filter(|it| {
            matches!(
                it.elsewhere,
                Elsewhere::LeftOut | Elsewhere::KeptIfSupported
            ) && (it.is_set)(other)
                && !(it.is_set)(self)
        });
        lacking.map(|it| it.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SubAgent;

    /// Returns parameters with a value of every kind.
    fn params() -> ExecuteParams {
        let mut params = ExecuteParams::new("hi");
        params.session_id = Some("s".into());
        params.fork = true;
        params.new_session_id = Some("n".into());
        params.slash_commands = true;
        params.add_dirs = vec!["/d".into()];
        params.sub_agents = vec![SubAgent::new("a", "b", "c")];
        params.model = Some("m".into());
        params.effort = Some("high".into());
        params.fallback_model = Some("f".into());
        params.allowed_tools = vec!["Bash".into()];
        params.denied_tools = vec!["Edit".into()];
        params.title = Some("t".into());
        params.max_turns = Some(3);
        params.cli_retries = Some(2);
        params.extra_args = vec!["-x".into()];
        params
    }

    #[test]
    fn another_provider_gets_what_means_the_same_there() {
        let set = |params: &ExecuteParams| -> Vec<_> {
            let set = PARAMETERS.iter().filter(|it| (it.is_set)(params));
            set.map(|it| it.name).collect()
        };
        let kept = ["slash_commands", "add_dirs", "denied_tools", "max_turns"];
        let mut can = Capabilities::none();
        let other = params().for_other_provider(&can);
        assert_eq!(set(&other), kept);
        assert_eq!(other.prompt, "hi");
        (can.title, can.cli_retries) = (true, true);
        let other = params().for_other_provider(&can);
        let with_both = [&kept[..3], &["title", "max_turns", "cli_retries"]].concat();
        assert_eq!(set(&other), with_both);
    }

    #[test]
    fn parameters_left_out_are_listed_without_the_session() {
        let all = params();
        let left_out = [
            "sub_agents",
            "model",
            "effort",
            "fallback_model",
            "allowed_tools",
            "title",
            "cli_retries",
            "extra_args",
        ];
        let mut other = all.for_other_provider(&Capabilities::none());
        assert_eq!(other.lacks(&all), left_out);
        assert!(all.lacks(&all).is_empty() && all.lacks(&other).is_empty());
        // Its own model takes the place of the other's.
        other.model = Some("own".into());
        assert_eq!(other.lacks(&all), [&left_out[..1], &left_out[2..]].concat());
    }

    #[test]
    fn only_texts_can_be_blank() {
        let blank = |params: &ExecuteParams| -> Vec<_> {
            let blank = PARAMETERS.iter().filter(|it| (it.is_blank)(params));
            blank.map(|it| it.name).collect()
        };
        assert!(blank(&params()).is_empty());
        let mut params = ExecuteParams::new("hi");
        assert!(blank(&params).is_empty());
        params.model = Some(" \t".into());
        params.effort = Some(String::new());
        assert_eq!(blank(&params), ["model", "effort"]);
    }
}
