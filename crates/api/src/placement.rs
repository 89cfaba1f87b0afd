//! Fields of a run or session that only a fleet obeys.

use serde::{Deserialize, Serialize};
use teamster_core::{AgentError, PermissionMode};

use crate::{RunSpec, SessionSpec, Spec, either};

/// The machines of a fleet that may carry a run or session out. Default: those of the default pool.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Placement {
    /// The pool whose machines may take it.
    #[schemars(length(min = 1), regex(pattern = r"[^\s\u0085]"))]
    pub pool: Option<String>,
    /// The only machine that may take it. Excludes `pool`.
    #[schemars(length(min = 1), regex(pattern = r"[^\s\u0085]"))]
    pub machine: Option<String>,
}

impl Placement {
    /// Creates the placement on the machines of a pool.
    pub fn pool(name: impl Into<String>) -> Self {
        Self {
            pool: Some(name.into()),
            machine: None,
        }
    }

    /// Creates the placement on one machine.
    pub fn machine(name: impl Into<String>) -> Self {
        Self {
            pool: None,
            machine: Some(name.into()),
        }
    }

    pub(crate) fn check(&self) -> Result<(), AgentError> {
        let refuse = |problem: &str| Err(AgentError::refused("placement", problem));
        let is_blank =
            |name: &Option<String>| name.as_ref().is_some_and(|name| name.trim().is_empty());
        if is_blank(&self.pool) || is_blank(&self.machine) {
            return refuse("expected the name of a pool or of a machine");
        }
        if self.pool.is_some() && self.machine.is_some() {
            return refuse("a machine is chosen by its name alone: omit the pool");
        }
        Ok(())
    }
}

/// The fields of a spec that only a fleet obeys.
struct FleetFields<'a> {
    placement: &'a Placement,
    secrets: &'a [String],
    rerun_if_lost: bool,
}

impl FleetFields<'_> {
    fn check_one_machine(&self) -> Result<(), AgentError> {
        let refuse = |name: &str, problem: &str| Err(AgentError::refused(name, problem));
        if *self.placement != Placement::default() {
            return refuse(
                "placement",
                "this is one machine, without a fleet to choose from: omit it, or start the run in a fleet",
            );
        }
        if !self.secrets.is_empty() {
            return refuse(
                "secrets",
                "only the workers of a fleet keep secrets: omit them and set variables, or start the run in a fleet",
            );
        }
        if self.rerun_if_lost {
            return refuse(
                "rerun_if_lost",
                "only a fleet has another machine for it: omit it, or start the run in a fleet",
            );
        }
        Ok(())
    }
}

impl RunSpec {
    /// [Checks](Self::check) what one machine is to carry out, without a fleet around it.
    ///
    /// # Errors
    ///
    /// Fails with the name of a field that is wrong, or that only a fleet obeys.
    pub fn check_one_machine(&self) -> Result<(), AgentError> {
        self.check()?;
        let fields = FleetFields {
            placement: &self.placement,
            secrets: &self.secrets,
            rerun_if_lost: self.rerun_if_lost,
        };
        fields.check_one_machine()
    }

    /// Checks that the run changes nothing that a second one would change again.
    pub(crate) fn check_rerun(&self) -> Result<(), AgentError> {
        let refuse = |problem: &str| Err(AgentError::refused("rerun_if_lost", problem));
        if !self.rerun_if_lost {
            return Ok(());
        }
        if self.permission != PermissionMode::ReadOnly {
            return refuse(
                "a run that may change something is never started over: set `permission` to `read-only`",
            );
        }
        if !self.allowed_tools.is_empty() {
            return refuse(
                "a tool that is allowed may change something, so the run is never started over: omit `allowed_tools`",
            );
        }
        Ok(())
    }
}

impl SessionSpec {
    /// [Checks](Self::check) what one machine is to carry out, without a fleet around it.
    ///
    /// # Errors
    ///
    /// Fails with the name of a field that is wrong, or that only a fleet obeys.
    pub fn check_one_machine(&self) -> Result<(), AgentError> {
        self.check()?;
        let fields = FleetFields {
            placement: &self.placement,
            secrets: &self.secrets,
            rerun_if_lost: false,
        };
        fields.check_one_machine()
    }
}

impl Spec {
    /// Checks what one machine is to carry out, without a fleet around it.
    ///
    /// # Errors
    ///
    /// Fails with the name of a field that is wrong, or that only a fleet obeys.
    pub fn check_one_machine(&self) -> Result<(), AgentError> {
        either!(self, spec => spec.check_one_machine())
    }

    /// Returns the machines of a fleet that may carry it out.
    pub fn placement(&self) -> &Placement {
        either!(self, spec => &spec.placement)
    }

    /// Returns the names of the secrets that the agent gets.
    pub fn secrets(&self) -> &[String] {
        either!(self, spec => &spec.secrets)
    }

    /// Removes what only a fleet obeys, and returns it as one machine of the fleet carries it out.
    #[must_use]
    pub fn for_one_machine(mut self) -> Self {
        either!(&mut self, spec => {
            spec.placement = Placement::default();
            spec.secrets.clear();
        });
        if let Self::Run(spec) = &mut self {
            spec.rerun_if_lost = false;
        }
        self
    }
}

/// Checks the names of secrets, which become those of variables.
pub(crate) fn check_secrets(names: &[String]) -> Result<(), AgentError> {
    let is_variable = |name: &str| {
        let mut bytes = name.bytes();
        bytes
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let Some(wrong) = names.iter().position(|name| !is_variable(name)) else {
        return Ok(());
    };
    // Its text may be a value.
    let problem = format!(
        "number {} is none: expected the name of a variable, such as `NPM_TOKEN`, without its value",
        wrong + 1
    );
    Err(AgentError::refused("secrets", problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl Fn(&mut RunSpec)) -> Option<String> {
        let mut spec = RunSpec::new("claude", "hi");
        change(&mut spec);
        spec.check().err()?.parameter().map(str::to_owned)
    }

    #[test]
    fn a_placement_names_a_pool_or_a_machine() {
        let placed = |pool: Option<&str>, machine: Option<&str>| {
            refused(|it| {
                it.placement.pool = pool.map(str::to_owned);
                it.placement.machine = machine.map(str::to_owned);
            })
        };
        assert_eq!(placed(Some("gpu"), None), None);
        assert_eq!(placed(None, Some("w1")), None);
        for (pool, machine) in [
            (Some(" "), None),
            (None, Some("")),
            (Some("gpu"), Some("w1")),
        ] {
            assert_eq!(placed(pool, machine).as_deref(), Some("placement"));
        }
    }

    #[test]
    fn only_a_run_that_changes_nothing_is_started_over() {
        let lost = |change: fn(&mut RunSpec)| {
            refused(move |it| {
                it.rerun_if_lost = true;
                it.permission = PermissionMode::ReadOnly;
                change(it);
            })
        };
        assert_eq!(lost(|_| {}), None);
        for change in [
            (|it| it.permission = PermissionMode::Default) as fn(&mut RunSpec),
            |it| it.permission = PermissionMode::AcceptEdits,
            |it| it.allowed_tools = vec!["Bash".into()],
        ] {
            assert_eq!(lost(change).as_deref(), Some("rerun_if_lost"));
        }
    }

    #[test]
    fn a_secret_is_named_and_its_value_is_not_repeated() {
        assert_eq!(refused(|it| it.secrets = vec!["NPM_TOKEN".into()]), None);
        for wrong in ["", "1A", "A B", "ü", "NPM_TOKEN=s3cret-value", "s3cret!"] {
            let mut spec = RunSpec::new("claude", "hi");
            spec.secrets = vec![wrong.to_owned()];
            let error = spec.check().unwrap_err();
            assert_eq!(error.parameter(), Some("secrets"), "{wrong}");
            assert!(!error.message.contains("s3cret"), "{}", error.message);
        }
    }

    #[test]
    fn single_machine_refuses_fleet_settings() {
        let named = |spec: &Spec| {
            let refused = spec.check_one_machine().err()?;
            refused.parameter().map(str::to_owned)
        };
        let mut run = RunSpec::new("claude", "hi");
        assert_eq!(named(&run.clone().into()), None);
        run.rerun_if_lost = true;
        run.permission = PermissionMode::ReadOnly;
        assert_eq!(named(&run.clone().into()).as_deref(), Some("rerun_if_lost"));
        run.secrets = vec!["NPM_TOKEN".into()];
        assert_eq!(named(&run.clone().into()).as_deref(), Some("secrets"));
        run.placement = Placement::machine("w1");
        assert_eq!(named(&run.clone().into()).as_deref(), Some("placement"));
        assert_eq!(named(&Spec::from(run).for_one_machine()), None);
        let mut session = SessionSpec::new("claude");
        session.placement = Placement::pool("gpu");
        session.secrets = vec!["NPM_TOKEN".into()];
        assert_eq!(named(&session.clone().into()).as_deref(), Some("placement"));
        assert_eq!(named(&Spec::from(session).for_one_machine()), None);
    }

    #[test]
    fn fleet_settings_are_not_written_by_default() {
        let json = serde_json::to_string(&RunSpec::new("claude", "hi")).unwrap();
        assert_eq!(json, r#"{"provider":"claude","prompt":"hi"}"#);
        let mut spec = RunSpec::new("claude", "hi");
        spec.placement = Placement::pool("gpu");
        let json = serde_json::to_value(&spec).unwrap();
        assert_eq!(json["placement"], serde_json::json!({"pool": "gpu"}));
        let unknown = r#"{"provider":"a","prompt":"b","placement":{"pools":["x"]}}"#;
        let error = serde_json::from_str::<RunSpec>(unknown).unwrap_err();
        assert!(error.to_string().contains("`pools`"), "{error}");
    }
}
