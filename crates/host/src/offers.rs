//! What a session would offer, as its agent reports before it begins.

use std::path::Path;
use std::time::Duration;

use teamster_api::SessionSpec;
use teamster_core::{AgentError, CliInfo, ErrorCode, ErrorKind, Offers, SessionOptions};
use tokio::task::spawn_blocking;

use crate::shared_holds::is_login_ending;
use crate::{Host, cli_commands, params, turns};

/// Time limit of an answer. On a busy machine the start of a CLI took 18 s.
const LIMIT: Duration = Duration::from_mins(1);

impl Host {
    /// Returns what a session with this description would offer: its agent is started and asked, without a request to a
    /// model and without a session. `None` if the agent cannot be asked like that, as in a container, which would be started
    /// for it, and if its login is about to be renewed. Dropping the future ends the agent's process.
    ///
    /// # Errors
    ///
    /// Fails with the reason if the agent cannot be started with this description, or does not answer.
    pub async fn offers(&self, spec: &SessionSpec) -> Result<Option<Offers>, AgentError> {
        spec.check_one_machine()?;
        let info = self.agent(&spec.provider)?;
        let mut config = params::runtime_config(&spec.trusted, info)?;
        if config.container.is_some() {
            return Ok(None);
        }
        config.record_to = None;
        let mut params = params::of_session(spec)?;
        let accounts = turns::accounts(self, info, &spec.fallback, &spec.accounts)?;
        if let Some(account) = accounts.iter().find(|it| it.agent == info.id) {
            account.apply(&mut params);
        }
        // Runs renew it one after another. A process that is ended while it does so may lose it.
        if is_login_ending(info, &params, spec.trusted.clean_env) {
            return Ok(None);
        }
        let runtime = self.providers().session_runtime(info.id, config)?;
        let asked = runtime.offers(SessionOptions::new(params));
        let limited = tokio::time::timeout(LIMIT, asked).await;
        let mut offers = limited.unwrap_or_else(|_| {
            let message = format!(
                "{} did not report what it offers within {LIMIT:?}",
                info.name
            );
            let error = AgentError::new(ErrorCode::WatchdogTimeout, ErrorKind::Timeout, message);
            Err(error)
        })?;
        let Some(directory) = spec.working_directory.clone() else {
            return Ok(offers);
        };
        let completed = spawn_blocking(move || {
            if let Some(offers) = &mut offers {
                add_commands(offers, info, &directory);
            }
            offers
        });
        Ok(completed.await.unwrap_or_default())
    }
}

/// Adds the commands in the project's files that the agent has not named: it may not read those of a project before a prompt.
fn add_commands(offers: &mut Offers, info: &CliInfo, directory: &Path) {
    let Some(commands) = &mut offers.commands else {
        return;
    };
    for command in cli_commands(info, directory) {
        if commands.iter().all(|known| known.name != command.name) {
            commands.push(command);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;
    use teamster_core::SlashCommand;
    use teamster_core::time::{epoch_ms, millis};
    use teamster_providers::Providers;

    use super::*;

    #[tokio::test]
    async fn an_agent_whose_login_is_about_to_be_renewed_is_not_asked() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().to_str().unwrap().to_owned();
        let mut spec = SessionSpec::new("claude");
        let trusted = &mut spec.trusted;
        trusted.clean_env = true;
        trusted.env.insert("CLAUDE_CONFIG_DIR".to_owned(), folder);
        trusted.program = Some("/nowhere/claude".into());
        let host = Host::new(Providers::builtin());
        for (minutes, is_asked) in [(1, false), (60, true)] {
            let at = epoch_ms() + millis(Duration::from_mins(minutes));
            let login = json!({"claudeAiOauth": {"accessToken": "t", "expiresAt": at}});
            fs::write(home.path().join(".credentials.json"), login.to_string()).unwrap();
            let offers = host.offers(&spec).await;
            // There is no program.
            assert_eq!(offers.is_err(), is_asked, "{offers:?}");
        }
    }

    #[test]
    fn commands_in_files_follow_those_that_the_agent_names() {
        let project = tempfile::tempdir().unwrap();
        let folder = project.path().join(".claude/commands");
        fs::create_dir_all(&folder).unwrap();
        for name in ["fix.md", "ship.md"] {
            fs::write(folder.join(name), "Do it.").unwrap();
        }
        let host = Host::new(Providers::builtin());
        let info = host.agent("claude").unwrap();
        let fix = SlashCommand::new("fix").description("As the agent names it");
        let mut offers = Offers::new().commands(vec![fix.clone()]);
        add_commands(&mut offers, info, project.path());
        assert_eq!(offers.commands, Some(vec![fix, SlashCommand::new("ship")]));
        let mut without = Offers::new();
        add_commands(&mut without, info, project.path());
        assert_eq!(without, Offers::new());
    }
}
