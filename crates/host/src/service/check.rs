//! Checks of a spec before anything is started.

use teamster_api::{Spec, either};
use teamster_core::{AgentError, ErrorCode, ErrorDetail, ErrorKind};
use teamster_providers::doctor::{self, LoginState};

use crate::{Host, missing_program, params, turns};

/// Checks that the directory of a run or session exists, that its agent is installed and not known to be logged out, and that
/// this machine has its accounts. Starts no process.
pub(super) fn check(host: &Host, spec: &Spec) -> Result<(), AgentError> {
    spec.check_one_machine()?;
    let (directory, trusted, fallback, accounts) = either!(spec, spec => {
        (spec.working_directory.as_deref(), &spec.trusted, &spec.fallback, &spec.accounts)
    });
    let info = host.agent(spec.provider())?;
    if let Some(directory) = directory.filter(|path| !path.is_dir()) {
        let problem = format!("the folder {} does not exist", directory.display());
        return Err(AgentError::refused("working_directory", problem));
    }
    let config = params::runtime_config(trusted, info)?;
    if let Some(mut error) = missing_program(info, trusted.env.get("PATH"), &config) {
        if config.program.is_none() && !info.install.is_empty() {
            error.message = format!("{}; install it with `{}`", error.message, info.install);
            error = error.detail(ErrorDetail::missing_program(info.program, info.install));
        }
        return Err(error);
    }
    let accounts = turns::accounts(host, info, fallback, accounts)?;
    if config.container.is_some() {
        // Its login is there.
        return Ok(());
    }
    let own: Vec<_> = (accounts.iter())
        .filter(|account| account.agent == info.id)
        .collect();
    let is_logged_out = if own.is_empty() {
        doctor::login_of(info).state == LoginState::No
    } else {
        own.iter().all(|account| account.has_login == Some(false))
    };
    // Variables of the spec may provide a login, and a clean environment may hide one.
    let is_changed = !trusted.env.is_empty() || trusted.clean_env;
    if !is_changed && is_logged_out {
        let names: Vec<_> = own.iter().map(|account| &*account.name).collect();
        let with = match &*names {
            [] => String::new(),
            names => format!(" with {}", names.join(", ")),
        };
        let problem = format!("{} is not logged in{with}: {}", info.name, info.login);
        return Err(AgentError::new(
            ErrorCode::CliError,
            ErrorKind::Auth,
            problem,
        ));
    }
    Ok(())
}
