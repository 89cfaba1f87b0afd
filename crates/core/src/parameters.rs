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
