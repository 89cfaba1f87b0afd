//! The secrets that a worker has for runs: a file that only its owner can read.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use teamster_api::{ProblemCode, ServiceError, Spec, either};
use teamster_core::AgentError;

use crate::login::read_private;

/// Stands for every owner.
const ANYONE: &str = "*";

/// The secrets of a file, by their names.
#[derive(Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Secrets(BTreeMap<String, Secret>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Secret {
    value: String,
    /// The owners of runs that may have it; `*` for all.
    owners: Vec<String>,
}

impl Secrets {
    /// Reads a file. It is read for each run, so a changed value counts at once. Fails if others can read it, and with
    /// the line if it is not valid. No error has a value.
    pub(super) fn read(file: Option<&Path>) -> Result<Self, ServiceError> {
        let Some(path) = file else {
            return Ok(Self::default());
        };
        let about = |problem: String| {
            let message = format!("the file of secrets {}: {problem}", path.display());
            ServiceError::new(ProblemCode::InvalidParams, message)
        };
        let text = read_private(path).map_err(about)?;
        Self::parse(&text).map_err(about)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let secrets: Result<Self, toml::de::Error> = toml::from_str(text);
        // The error's own text would show the line, and its message may have the value.
        secrets.map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(1, |before| before.matches('\n').count() + 1);
            format!("line {line}: expected `[NAME]` with `value = \"…\"` and `owners = [\"…\"]`")
        })
    }

    fn get(&self, owner: &str, name: &str) -> Option<&str> {
        let secret = self.0.get(name)?;
        let mut owners = secret.owners.iter();
        let may = owners.any(|known| known == owner || known == ANYONE);
        may.then_some(&*secret.value)
    }

    /// Gives the agent of a run of this owner the secrets that its spec names. Fails with the name of one that is not
    /// there, or that is not for this owner: which of the two is not shown.
    pub(super) fn give(&self, owner: &str, spec: &mut Spec) -> Result<(), ServiceError> {
        let names = spec.secrets().to_vec();
        let trusted = either!(spec, spec => &mut spec.trusted);
        for name in names {
            let Some(value) = self.get(owner, &name) else {
                let problem = format!("the worker has no secret {name} for this owner");
                return Err(AgentError::refused("secrets", problem).into());
            };
            trusted.env.insert(name, value.to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use teamster_api::RunSpec;

    use super::*;

    const FILE: &str =
        "[NPM_TOKEN]\nvalue = 'one'\nowners = ['ann']\n[ALL]\nvalue = 'two'\nowners = ['*']\n";

    fn given(owner: &str, names: &[&str]) -> Result<Vec<(String, String)>, String> {
        let mut spec = RunSpec::new("claude", "x");
        spec.secrets = names.iter().map(ToString::to_string).collect();
        let mut spec = Spec::from(spec);
        let secrets = Secrets::parse(FILE).unwrap();
        secrets
            .give(owner, &mut spec)
            .map_err(|error| error.message)?;
        let Spec::Run(spec) = spec else {
            unreachable!()
        };
        Ok(spec.trusted.env.into_iter().collect())
    }

    #[test]
    fn a_secret_is_given_to_the_owners_that_it_is_for() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let both = given("ann", &["NPM_TOKEN", "ALL"]).unwrap();
        assert_eq!(both, [pair("ALL", "two"), pair("NPM_TOKEN", "one")]);
        assert_eq!(given("bob", &["ALL"]).unwrap(), [pair("ALL", "two")]);
        // The same words for what is not there and for what is another's.
        let foreign = given("bob", &["NPM_TOKEN"]).unwrap_err();
        let missing = given("bob", &["OTHER"]).unwrap_err();
        assert_eq!(foreign.replace("NPM_TOKEN", "OTHER"), missing);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secrets.toml");
        fs::write(&file, FILE).unwrap();
        for (mode, refused) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let read = Secrets::read(Some(&file)).err().map(|error| error.message);
            assert_eq!(read.is_some(), refused, "{mode:o}");
            assert!(read.is_none_or(|message| message.contains("chmod 600")));
        }
        assert!(Secrets::read(None).unwrap().0.is_empty());
    }

    #[test]
    fn an_error_has_the_line_and_no_value() {
        for (text, line) in [
            ("[A]\nvalue = 's3cret'\n", 1),
            ("[A]\nowners = ['ann']\nvalue = 's3cret\n", 3),
            (
                "[A]\nvalue = 's3cret'\nowners = ['ann']\nvalues = 's3cret'\n",
                4,
            ),
            ("A = 's3cret'", 1),
        ] {
            let error = Secrets::parse(text).err().unwrap();
            assert!(error.contains(&format!("line {line}:")), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
