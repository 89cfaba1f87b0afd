//! Extra arguments of a run ([`ExecuteParams::extra_args`](teamster_core::ExecuteParams)).

use teamster_core::AgentError;
use teamster_core::text::excerpt;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ExtraArgs {
    /// `--base-url URL`: address of the model's service.
    pub(crate) base_url: Option<String>,
    /// `--max-tokens N`: maximum tokens of an answer.
    pub(crate) max_tokens: Option<u32>,
    /// `--sandbox`: commands can write only in the directories of the run.
    pub(crate) sandbox: bool,
}

impl ExtraArgs {
    pub(crate) fn parse(args: &[String]) -> Result<Self, AgentError> {
        let refused = |problem: String| AgentError::refused("extra_args", problem);
        let mut parsed = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (arg.as_str(), None),
            };
            if arg == "--sandbox" {
                parsed.sandbox = true;
                continue;
            }
            if !matches!(name, "--base-url" | "--max-tokens") {
                return Err(refused(format!(
                    "unknown argument `{}`; available: --base-url URL, --max-tokens N, --sandbox",
                    excerpt(name, 100)
                )));
            }
            let Some(value) = value.or_else(|| args.next().cloned()) else {
                return Err(refused(format!("the value of {name} is missing")));
            };
            if name == "--base-url" {
                parsed.base_url = Some(value);
            } else {
                let tokens = value.parse().ok().filter(|tokens| *tokens > 0);
                parsed.max_tokens = Some(tokens.ok_or_else(|| {
                    refused("--max-tokens must be a number of at least 1".to_owned())
                })?);
            }
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<ExtraArgs, String> {
        let args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
        ExtraArgs::parse(&args).map_err(|error| error.message)
    }

    #[test]
    fn values_stand_behind_the_name_or_an_equals_sign() {
        let expected = ExtraArgs {
            base_url: Some("http://h/v1?a=b".into()),
            max_tokens: Some(7),
            sandbox: true,
        };
        assert_eq!(
            parse(&[
                "--base-url=http://h/v1?a=b",
                "--sandbox",
                "--max-tokens",
                "7"
            ]),
            Ok(expected)
        );
        assert_eq!(parse(&[]), Ok(ExtraArgs::default()));
        assert_eq!(
            parse(&["--base-url"]).unwrap_err(),
            "extra_args: the value of --base-url is missing"
        );
        assert!(
            parse(&["--max-tokens=0"])
                .unwrap_err()
                .contains("at least 1")
        );
        assert!(
            parse(&["-v"])
                .unwrap_err()
                .contains("unknown argument `-v`")
        );
    }
}
