//! The table of differences that CLIs force.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;
use teamster_mock_model::Cli;

use crate::column::Column;
use crate::install;
use crate::story::{ANY, Story};

/// Value of a fact that is not reported.
const ABSENT: &str = "(absent)";
/// Value of a fact that is reported with additional text around the expected one.
const CONTAINS: &str = "(contains)";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Differences {
    #[serde(default)]
    pub(crate) difference: Vec<Difference>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Difference {
    /// Its name, as in the matrix. The same difference has the same name for all CLIs.
    pub(crate) name: String,
    pub(crate) providers: Vec<String>,
    pub(crate) why: String,
    /// Scenarios in which it occurs; `*` for all that report its facts.
    pub(crate) scenarios: Vec<String>,
    /// True for turns of a session only, false for runs only. Default: both.
    pub(crate) hot: Option<bool>,
    /// The first version with it. Default: all versions.
    pub(crate) since: Option<String>,
    /// The first version without it. Default: none.
    pub(crate) before: Option<String>,
    /// The reported facts. `tool*` stands for any tool.
    pub(crate) facts: BTreeMap<String, Value>,
}

/// Result of a comparison of a story with the expected one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdict {
    /// Names of the declared differences that occurred.
    pub(crate) declared: BTreeSet<String>,
    pub(crate) undeclared: Vec<String>,
}

impl Verdict {
    /// Creates the verdict of a scenario that could not be played.
    pub(crate) fn failed(error: &anyhow::Error) -> Self {
        Self {
            undeclared: vec![format!("{error:#}")],
            ..Self::default()
        }
    }
}

impl Differences {
    /// Keeps the differences that apply to these versions of the CLIs.
    pub(crate) fn of_versions(mut self, versions: &BTreeMap<Cli, String>) -> Self {
        self.difference.retain(|one| one.is_of(versions));
        self
    }

    pub(crate) fn read() -> anyhow::Result<Self> {
        let path = crate::here().join("differences.toml");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let all: Self = toml::from_str(&text).with_context(|| path.display().to_string())?;
        for one in &all.difference {
            check(one).with_context(|| format!("{}: {}", path.display(), one.name))?;
        }
        Ok(all)
    }

    /// Compares a story with the expected one.
    pub(crate) fn compare(
        &self,
        column: Column,
        scenario: &str,
        expected: &Story,
        actual: &Story,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        // A difference with any value counts even if the value is the expected one.
        let depends = self.difference.iter().filter(|one| {
            one.is_about(column, scenario) && one.facts.values().all(|value| value == ANY)
        });
        verdict.declared.extend(depends.map(|one| one.name.clone()));
        let facts: BTreeSet<_> = expected.keys().chain(actual.keys()).collect();
        for fact in facts {
            let (expected, actual) = (expected.get(fact), actual.get(fact));
            if expected == actual || expected.is_some_and(|value| value == ANY) {
                continue;
            }
            match self.declaring(column, scenario, fact, expected, actual) {
                Some(difference) => {
                    verdict.declared.insert(difference.name.clone());
                }
                None => verdict.undeclared.push(format!(
                    "{fact}: expected {}, got {}",
                    shown(expected),
                    shown(actual)
                )),
            }
        }
        verdict
    }

    /// Returns the difference that declares this value of a fact.
    pub(crate) fn declaring(
        &self,
        column: Column,
        scenario: &str,
        fact: &str,
        expected: Option<&Value>,
        actual: Option<&Value>,
    ) -> Option<&Difference> {
        self.difference.iter().find(|difference| {
            difference.is_about(column, scenario)
                && difference
                    .fact(fact)
                    .is_some_and(|instead| is(instead, expected, actual))
        })
    }

    /// Returns the differences that are declared for some versions only: names with their reasons.
    pub(crate) fn of_some_versions(
        &self,
        column: Column,
        scenario: &str,
        verdict: &Verdict,
    ) -> BTreeMap<String, String> {
        let some = self.difference.iter().filter(|one| {
            (one.since.is_some() || one.before.is_some())
                && one.is_about(column, scenario)
                && verdict.declared.contains(&one.name)
        });
        some.map(|one| (one.name.clone(), one.why.clone()))
            .collect()
    }

    /// Returns whether a difference of this name is declared for this scenario explicitly, not by `*`.
    pub(crate) fn names(&self, declared: &str, scenario: &str) -> bool {
        let mut named = self.difference.iter().filter(|one| one.name == declared);
        named.any(|one| one.scenarios.iter().any(|name| name == scenario))
    }

    /// Returns the entries that none of these runs needed, if they could have. Entries for `*` only count if
    /// `all` scenarios were played.
    pub(crate) fn unused(
        &self,
        ran: &BTreeMap<(Column, String), Verdict>,
        all: bool,
    ) -> Vec<String> {
        let columns: BTreeSet<_> = ran.keys().map(|(column, _)| *column).collect();
        let mut unused = Vec::new();
        for difference in &self.difference {
            for column in &columns {
                let about: Vec<_> = ran
                    .iter()
                    .filter(|((of, scenario), _)| {
                        of == column && difference.is_about(*of, scenario)
                    })
                    .collect();
                let seen = |verdict: &Verdict| verdict.declared.contains(&difference.name);
                if difference.scenarios == ["*"] {
                    if all && !about.is_empty() && !about.iter().any(|(_, verdict)| seen(verdict)) {
                        unused.push(format!("{}: not seen with {column}", difference.name));
                    }
                    continue;
                }
                for ((_, scenario), verdict) in about {
                    if !seen(verdict) {
                        unused.push(format!(
                            "{}: not seen with {column} in {scenario}",
                            difference.name
                        ));
                    }
                }
            }
        }
        unused
    }
}

fn check(one: &Difference) -> anyhow::Result<()> {
    if one.why.trim().is_empty()
        || one.facts.is_empty()
        || one.scenarios.is_empty()
        || one.providers.is_empty()
    {
        bail!("it needs `providers`, `scenarios`, `facts` and a reason (`why`)");
    }
    for provider in &one.providers {
        if Cli::from_id(provider).is_none() {
            bail!("unknown provider `{provider}`");
        }
    }
    for version in one.since.iter().chain(&one.before) {
        if install::numbers(version).is_none() || one.providers.len() != 1 {
            bail!("`since` and `before` are releases of one provider");
        }
    }
    for fact in one.facts.keys() {
        if !crate::fact::is_fact(&fact.replace('*', "1")) {
            bail!("unknown fact `{fact}`");
        }
    }
    Ok(())
}

impl Difference {
    /// Returns whether the difference applies to any of these versions.
    fn is_of(&self, versions: &BTreeMap<Cli, String>) -> bool {
        let mut versions = versions
            .iter()
            .filter(|(cli, _)| self.providers.iter().any(|id| id == cli.id()));
        versions.any(|(_, version)| {
            let since = self.since.as_deref();
            let before = self.before.as_deref();
            since.is_none_or(|since| !install::is_older(version, since))
                && before.is_none_or(|before| install::is_older(version, before))
        })
    }

    fn is_about(&self, column: Column, scenario: &str) -> bool {
        self.providers
            .iter()
            .any(|provider| provider == column.cli.id())
            && self.hot.is_none_or(|hot| hot == column.hot)
            && self
                .scenarios
                .iter()
                .any(|name| name == "*" || name == scenario)
    }

    fn fact(&self, fact: &str) -> Option<&Value> {
        self.facts.get(fact).or_else(|| {
            let (base, part) = fact
                .split_once('.')
                .map_or((fact, None), |(b, p)| (b, Some(p)));
            let any = base
                .strip_prefix("tool")
                .filter(|n| n.parse::<usize>().is_ok());
            any?;
            match part {
                Some(part) => self.facts.get(&format!("tool*.{part}")),
                None => self.facts.get("tool*"),
            }
        })
    }
}

fn is(instead: &Value, expected: Option<&Value>, actual: Option<&Value>) -> bool {
    match instead.as_str() {
        Some(ANY) => true,
        Some(ABSENT) => actual.is_none(),
        Some(CONTAINS) => {
            let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
            match (text(expected), text(actual)) {
                (Some(expected), Some(actual)) => actual.contains(&expected),
                _ => false,
            }
        }
        _ => actual == Some(instead),
    }
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(value) => {
            let text = value.to_string();
            if text.chars().count() > 400 {
                let start: String = text.chars().take(400).collect();
                format!("{start}… ({} bytes)", text.len())
            } else {
                text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CLAUDE: Column = Column {
        cli: Cli::Claude,
        hot: false,
    };
    const CODEX: Column = Column {
        cli: Cli::Codex,
        hot: false,
    };
    const GEMINI: Column = Column {
        cli: Cli::Gemini,
        hot: false,
    };

    fn table() -> Differences {
        toml::from_str(
            r#"
            [[difference]]
            name = "no-cost"
            providers = ["codex"]
            why = "it reports none"
            scenarios = ["*"]
            facts = { cost = "(absent)" }
            [[difference]]
            name = "wrapped"
            providers = ["gemini"]
            why = "it wraps"
            scenarios = ["shell"]
            facts = { "tool*.output" = "(contains)", status = "failed" }
            "#,
        )
        .unwrap()
    }

    fn story(value: Value) -> Story {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn undeclared_differences_are_errors() {
        let expected = story(json!({"status": "completed", "cost": true, "tool2.output": "a"}));
        let table = table();
        let actual = story(json!({"status": "completed", "tool2.output": "a"}));
        let verdict = table.compare(CODEX, "x", &expected, &actual);
        assert!(verdict.undeclared.is_empty(), "{verdict:?}");
        assert!(verdict.declared.contains("no-cost"));
        let verdict = table.compare(CLAUDE, "x", &expected, &actual);
        assert_eq!(verdict.undeclared, ["cost: expected true, got nothing"]);
    }

    fn undeclared(column: Column, scenario: &str, expected: &Story, actual: Value) -> Vec<String> {
        let verdict = table().compare(column, scenario, expected, &story(actual));
        verdict.undeclared
    }

    #[test]
    fn a_declaration_has_the_reported_facts_and_scenarios() {
        let expected = story(json!({"status": "completed", "tool2.output": "a"}));
        let wrapped = || json!({"status": "failed", "tool2.output": "Output: a"});
        let none: [&str; 0] = [];
        assert_eq!(undeclared(GEMINI, "shell", &expected, wrapped()), none);
        let elsewhere = undeclared(GEMINI, "text", &expected, wrapped());
        assert_eq!(elsewhere.len(), 2, "{elsewhere:?}");
        let other = json!({"status": "aborted", "tool2.output": "b"});
        let other = undeclared(GEMINI, "shell", &expected, other);
        assert_eq!(other.len(), 2, "{other:?}");
        let more = json!({"status": "completed", "tool2.output": "a", "denials": 1});
        let more = undeclared(GEMINI, "shell", &expected, more);
        assert_eq!(more, ["denials: expected nothing, got 1"]);
    }

    #[test]
    fn a_declaration_that_is_not_needed_is_found() {
        let table = table();
        let ran = BTreeMap::from([
            ((CODEX, "x".to_owned()), Verdict::default()),
            ((GEMINI, "x".to_owned()), Verdict::default()),
        ]);
        assert_eq!(table.unused(&ran, true), ["no-cost: not seen with codex"]);
        assert!(table.unused(&ran, false).is_empty());
    }

    #[test]
    fn a_declaration_can_be_about_sessions_only_or_about_runs_only() {
        let mut table = table();
        table.difference[0].hot = Some(true);
        let hot = Column::hot(Cli::Codex);
        let expected = story(json!({"cost": true}));
        let actual = Story::new();
        let cold_verdict = table.compare(CODEX, "x", &expected, &actual);
        assert_eq!(
            cold_verdict.undeclared,
            ["cost: expected true, got nothing"]
        );
        let verdict = table.compare(hot, "x", &expected, &actual);
        assert!(verdict.undeclared.is_empty(), "{verdict:?}");
        let ran = BTreeMap::from([
            ((CODEX, "x".to_owned()), cold_verdict),
            ((hot, "x".to_owned()), verdict),
        ]);
        assert!(table.unused(&ran, true).is_empty());
        table.difference[0].hot = None;
        assert_eq!(table.unused(&ran, true), ["no-cost: not seen with codex"]);
        table.difference[0].hot = Some(false);
        let ran = BTreeMap::from([((hot, "x".to_owned()), Verdict::default())]);
        assert!(table.unused(&ran, true).is_empty());
    }

    #[test]
    fn variable_facts_are_a_difference_in_every_run() {
        let mut table = table();
        table.difference[1].facts = BTreeMap::from([("tool1.failed".to_owned(), json!(ANY))]);
        let expected = story(json!({"status": "completed"}));
        for actual in [
            json!({"status": "completed"}),
            json!({"status": "completed", "tool1.failed": true}),
        ] {
            let verdict = table.compare(GEMINI, "shell", &expected, &story(actual));
            assert!(verdict.undeclared.is_empty(), "{verdict:?}");
            assert_eq!(verdict.declared, BTreeSet::from(["wrapped".to_owned()]));
            let ran = BTreeMap::from([((GEMINI, "shell".to_owned()), verdict)]);
            assert!(table.unused(&ran, true).is_empty());
        }
        let verdict = table.compare(GEMINI, "text", &expected, &expected);
        assert!(verdict.declared.is_empty());
    }

    #[test]
    fn a_declaration_can_be_about_some_versions_only() {
        let count = |since: Option<&str>, before: Option<&str>, version: &str| {
            let mut table = table();
            table.difference.truncate(1);
            table.difference[0].since = since.map(str::to_owned);
            table.difference[0].before = before.map(str::to_owned);
            check(&table.difference[0]).unwrap();
            let versions = BTreeMap::from([(Cli::Codex, version.to_owned())]);
            table.of_versions(&versions).difference.len()
        };
        assert_eq!(count(None, None, "0.1.0"), 1);
        assert_eq!(count(Some("0.9.0"), None, "0.8.7"), 0);
        assert_eq!(count(Some("0.9.0"), None, "0.9.0"), 1);
        assert_eq!(count(None, Some("0.10.0"), "0.9.9"), 1);
        assert_eq!(count(None, Some("0.10.0"), "0.10.0"), 0);
        assert_eq!(count(Some("0.9.0"), Some("0.10.0"), "0.9.1"), 1);
        let mut table = table();
        table.difference[0].since = Some("new".to_owned());
        assert!(check(&table.difference[0]).is_err());
        table.difference[0].since = Some("0.9.0".to_owned());
        table.difference[0].providers.push("claude".to_owned());
        assert!(check(&table.difference[0]).is_err());
    }

    #[test]
    fn facts_with_any_value_are_not_compared() {
        let expected = story(json!({"tool1.output": ANY}));
        let found = undeclared(CODEX, "x", &expected, json!({"tool1.output": "anything"}));
        assert!(found.is_empty(), "{found:?}");
    }
}
