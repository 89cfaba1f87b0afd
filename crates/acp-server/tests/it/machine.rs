//! The catalog of a machine.

use serde_json::json;
use teamster_acp_server::{Catalog, Choice};
use teamster_api::history::{RunFilter, RunRecord};
use teamster_api::{MachineService, ProblemCode, ProviderReport, ServiceError, SessionSpec};
use teamster_core::{Capabilities, PermissionMode};

struct Machine;

fn report(id: &str, usable: bool, login: &str, sessions: bool) -> ProviderReport {
    let facts = json!({
        "id": id, "name": id.to_uppercase(), "usable": usable, "inProcess": false, "tested": true,
        "testedVersions": ["1"], "tooOld": false, "install": "-", "login": {"state": login},
        "howToLogIn": format!("log in with `{id}`"),
    });
    let mut capabilities = Capabilities::none();
    capabilities.effort = true;
    capabilities.permission_modes = &[PermissionMode::ReadOnly, PermissionMode::Default];
    let facts = serde_json::from_value(facts).unwrap();
    let mut report = ProviderReport::new(facts, capabilities);
    report.sessions = sessions;
    report.session_images = id == "out";
    report
}

#[async_trait::async_trait]
impl MachineService for Machine {
    async fn agents(&self) -> Result<Vec<ProviderReport>, ServiceError> {
        Ok(vec![
            // Of another machine of a fleet.
            report("ready", false, "no", true),
            report("missing", false, "yes", true),
            report("without", true, "yes", false),
            report("out", true, "no", true),
            report("ready", true, "unknown", true),
        ])
    }

    async fn history(&self, _: RunFilter) -> Result<Vec<RunRecord>, ServiceError> {
        let run = |provider: &str, model: &str| {
            let record = json!({
                "runId": "r", "provider": provider, "model": model, "status": "success",
                "promptHash": "", "startedAt": 1, "attempts": 1, "host": "", "pid": 1, "heartbeatAt": 1,
            });
            serde_json::from_value(record).unwrap()
        };
        Ok(vec![
            run("ready", "b"),
            run("out", "x"),
            run("ready", "a"),
            run("ready", "b"),
        ])
    }
}

#[tokio::test]
async fn agents_that_have_sessions_are_offered_ready_ones_first() {
    let mut session = SessionSpec::new("");
    session.model = Some("one".to_owned());
    let catalog = Catalog::of_machine(&Machine, &session).await.unwrap();
    assert!(catalog.choose_agent);
    let ids: Vec<_> = catalog.agents.iter().map(|it| &*it.id).collect();
    assert_eq!(ids, ["ready", "missing", "out"]);
    // The model is that of another agent.
    assert_eq!(catalog.agents[0].settings.model, None);
}

#[tokio::test]
async fn named_agent_has_the_session_settings_and_known_models() {
    let mut session = SessionSpec::new("ready");
    session.model = Some("one".to_owned());
    session.permission = PermissionMode::ReadOnly;
    let catalog = Catalog::of_machine(&Machine, &session).await.unwrap();
    assert!(!catalog.choose_agent);
    let [agent] = &catalog.agents[..] else {
        panic!("{catalog:?}");
    };
    assert_eq!((&*agent.id, &*agent.name), ("ready", "READY"));
    assert_eq!(agent.models, ["b", "a"].map(Choice::new));
    assert_eq!(
        agent.modes,
        [PermissionMode::Default, PermissionMode::ReadOnly]
    );
    assert_eq!(agent.settings.model.as_deref(), Some("one"));
    assert_eq!(agent.settings.mode, PermissionMode::ReadOnly);
    assert_eq!(agent.login, "log in with `ready`");
    assert_eq!(agent.efforts.len(), 3);
    assert_eq!((agent.images, agent.add_dirs), (false, false));
    // Of its sessions only.
    let out = Catalog::of_machine(&Machine, &SessionSpec::new("out")).await;
    assert!(out.unwrap().agents[0].images);

    let none = Catalog::of_machine(&Machine, &SessionSpec::new("none")).await;
    let refused = none.unwrap_err();
    assert_eq!(refused.code, Some(ProblemCode::InvalidParams));
    assert!(
        refused
            .message
            .contains("available: without, ready, missing, out"),
        "{refused}"
    );
    let command = Catalog::of_machine(&Machine, &SessionSpec::new("acp:x")).await;
    assert_eq!(command.unwrap().agents[0].id, "acp:x");
}
