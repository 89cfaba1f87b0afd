use super::*;

#[test]
fn temporary_kinds_are_retryable() {
    use ErrorKind::{Network, Overloaded, Protocol, RateLimit, Timeout};
    for kind in ErrorKind::ALL.iter().copied() {
        let temporary = matches!(kind, RateLimit | Overloaded | Network | Timeout | Protocol);
        assert_eq!(kind.is_retryable(), temporary, "{kind}");
        let error = AgentError::new(ErrorCode::CliError, kind, "x");
        assert_eq!((error.kind, error.retryable), (kind, temporary));
    }
}

#[test]
fn refusals_name_the_parameter_and_the_item() {
    for (error, name, item, message) in [
        (
            AgentError::refused("effort", "it is blank"),
            "effort",
            None,
            "effort: it is blank",
        ),
        (
            AgentError::refused_server("web", "no URL"),
            "mcp_servers",
            Some("web"),
            "mcp_servers: web: no URL",
        ),
        (
            AgentError::refused_item("env", "A=B", "`=` in the name"),
            "env",
            Some("A=B"),
            "env: A=B: `=` in the name",
        ),
        (
            AgentError::invalid_params("no such agent").about("provider"),
            "provider",
            None,
            "no such agent",
        ),
    ] {
        assert_eq!(error.to_string(), message);
        assert_eq!(
            (error.code, error.kind, error.retryable),
            (ErrorCode::InvalidParams, ErrorKind::Invalid, false)
        );
        assert_eq!(error.parameter(), Some(name), "{error}");
        let problem = message
            .rsplit_once(": ")
            .map_or(message, |(_, problem)| problem);
        let detail = ErrorDetail::Parameter {
            name: name.to_owned(),
            item: item.map(str::to_owned),
            problem: problem.to_owned(),
            holder: None,
        };
        assert_eq!(error.detail.as_deref(), Some(&detail));
    }
}

#[test]
fn details_of_one_kind_are_none_of_another() {
    let plain = AgentError::no_turn();
    assert_eq!(
        (plain.code, plain.kind),
        (ErrorCode::NoTurn, ErrorKind::Invalid)
    );
    assert!(plain.detail.is_none() && plain.cause.is_none());

    let held = AgentError::session_in_use("session_id", "run 7 has it");
    assert_eq!(held.holder(), None);
    assert!(held.retryable);
    let held = held.held_by("7");
    assert_eq!(
        (held.parameter(), held.holder()),
        (Some("session_id"), Some("7"))
    );
    // An error about no parameter has no holder.
    assert_eq!(plain.clone().held_by("7"), plain);

    let budget = ErrorDetail::budget(BudgetKind::Usd, Some(1.5));
    let spent = plain.clone().detail(budget);
    assert_eq!(spent.budget(), Some(BudgetKind::Usd));
    assert_eq!((spent.parameter(), spent.holder()), (None, None));
    for other in [&plain, &held] {
        assert_eq!(other.budget(), None, "{other}");
    }
    assert_eq!(plain.parameter(), None);
}

#[test]
fn the_source_of_an_error_is_its_cause() {
    let first = AgentError::new(ErrorCode::CliError, ErrorKind::Quota, "no credit");
    assert!(first.source().is_none());
    let held = AgentError::new(ErrorCode::ProviderOnHold, ErrorKind::Quota, "on hold");
    let held = held.cause(first.clone());
    let source = held
        .source()
        .and_then(|source| source.downcast_ref::<AgentError>());
    assert_eq!(source, Some(&first));
}

#[test]
fn copies_of_an_error_are_the_same_and_equal_ones_are_not() {
    let lost = || AgentError::new(ErrorCode::CliError, ErrorKind::Network, "lost");
    let (one, other) = (lost(), lost());
    assert_eq!(one, other);
    assert!(!one.is_same(&other));
    let changed = one
        .clone()
        .message("lost (not tried again)")
        .retryable(false);
    assert!(changed != one && changed.is_same(&one));
    // It is no part of the wire form, so an error that was read is a new one.
    let json = serde_json::to_value(&one).unwrap();
    assert_eq!(
        json,
        serde_json::json!({"message": "lost", "code": "CLI_ERROR", "kind": "network", "retryable": true})
    );
    let read: AgentError = serde_json::from_value(json).unwrap();
    assert!(read == one && !read.is_same(&one));
}
