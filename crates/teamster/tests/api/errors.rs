//! The page on errors lists all codes, kinds and details.

use std::sync::Arc;

use teamster::orchestrator::{
    Budget, Candidate, Limits, Orchestrator, OrchestratorConfig, RunRequest,
};
use teamster::{
    AgentError, BudgetKind, ErrorCode, ErrorDetail, ErrorKind, ExecuteParams, NotRetried,
    Providers, RuntimeConfig,
};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

const PAGE: &str = include_str!("../../../../docs/errors.md");

/// Returns the first cells of the rows below this heading.
fn rows(heading: &str) -> Vec<&'static str> {
    let (_, section) = PAGE.split_once(heading).unwrap();
    let section = section.split("\n## ").next().unwrap();
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect()
}

#[test]
fn every_code_has_a_row() {
    let codes: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(rows("\n## By code\n"), codes);
}

#[test]
fn every_kind_has_a_row() {
    let kinds: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(rows("\n## By kind\n"), kinds);
}

#[test]
fn every_detail_is_there() {
    let budgets = BudgetKind::ALL.iter().map(|budget| budget.as_str());
    let reasons = NotRetried::ALL.iter().map(|reason| reason.as_str());
    let (_, section) = PAGE.split_once("\n## By detail\n").unwrap();
    for word in budgets.chain(reasons).filter(|word| *word != "other") {
        assert!(section.contains(&format!("`{word}`")), "{word}");
    }
}

#[test]
fn every_type_of_a_detail_has_a_row() {
    let details = [
        *AgentError::refused("model", "no").detail.unwrap(),
        ErrorDetail::budget(BudgetKind::Usd, None),
        ErrorDetail::missing_program("x", "npm i x"),
        ErrorDetail::not_retried(NotRetried::NoSlot, "no"),
    ];
    let types: Vec<_> = details
        .iter()
        .map(|detail| {
            serde_json::to_value(detail).unwrap()["type"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    // The first row is the table's head.
    assert_eq!(rows("\n## By detail\n")[1..], types);
}

/// Returns the parameter for which this request is refused.
async fn refused(request: RunRequest) -> String {
    let orchestrator = Orchestrator::new(OrchestratorConfig::default()).unwrap();
    let outcome = orchestrator.start(request).await;
    let error = outcome.error().unwrap();
    assert_eq!(error.code, ErrorCode::InvalidParams);
    error.parameter().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn refusals_name_their_parameter() {
    let providers = Providers::builtin();
    let unknown = providers.runtime("nobody", RuntimeConfig::default());
    assert_eq!(unknown.err().unwrap().parameter(), Some("provider"));
    let unknown = providers.session_runtime("nobody", RuntimeConfig::default());
    assert_eq!(unknown.err().unwrap().parameter(), Some("provider"));
    let limits = Limits::default().overall(0).check().unwrap_err();
    assert_eq!(limits.parameter(), Some("limits.overall"));

    let mock = Arc::new(MockRuntime::new("claude").run(Script::new().text("hi").completed()));
    let request = || RunRequest::new(mock.clone(), ExecuteParams::new("hi"));
    let budget = Budget::default().tokens(0);
    assert_eq!(refused(request().budget(budget)).await, "budget.tokens");
    let denied = ExecuteParams::new("hi").denied_tools(["Bash"]);
    let other = Candidate::for_other_provider(mock.clone(), &denied).unwrap_err();
    assert_eq!(other.parameter(), Some("denied_tools"));
}
