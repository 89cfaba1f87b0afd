use jiff::tz::TimeZone;
use teamster_api::usage::Dimension;

use super::*;
use crate::Key;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn tokens(n: u64) -> Usage {
    Usage::default().input_tokens(n)
}

/// Returns accounts with one request of a session.
fn accounts(session: &str, cost: Option<f64>) -> Accounts {
    let mut accounts = Accounts::new(None, None, TimeZone::UTC);
    let mut record = Record::new(Provider::Claude, session.into(), at(10));
    record.key = Some(Key::of(Provider::Claude, &[session]));
    record.model = Some("claude-opus-4-8".into());
    record.usage = tokens(5);
    record.cost_usd = cost;
    record.directory = Some("/agent".into());
    accounts.add(record);
    accounts
}

fn run(id: &str, session: Option<&str>, usage: u64, cost: Option<f64>) -> PastRun {
    let mut run = PastRun::new(id, Witness::History, Provider::Claude, at(9));
    run.session = session.map(str::to_owned);
    run.usage = Some(tokens(usage));
    run.cost_usd = cost;
    run.model = Some("claude-opus-4-8[1m]".to_owned());
    run.requests = Some(3);
    run
}

fn joined(only_there: u64, with_cost: u64) -> Joined {
    Joined {
        only_there,
        with_cost,
    }
}

#[test]
fn of_a_session_that_the_files_know_only_the_cost_is_taken() {
    let mut accounts = accounts("s", None);
    let runs = [
        run("1", Some("s"), 100, Some(0.25)),
        run("2", Some("s"), 100, Some(0.5)),
    ];
    assert_eq!(accounts.join(runs), joined(0, 2));
    let total = accounts.total();
    assert_eq!((total.requests, total.usage), (1, tokens(5)));
    assert_eq!(total.reported_cost_usd, Some(0.75));
    assert_eq!(total.unpriced_requests, 0, "a cost is no request");
    // The cost belongs to the model as named in the files, and to the agent of the session's directory.
    let models = accounts.by(Dimension::Model);
    assert_eq!(models.len(), 1);
    assert_eq!(models[0].name.as_deref(), Some("claude-opus-4-8"));
    let agents = accounts.by(Dimension::Agent);
    assert_eq!(agents[0].figures.reported_cost_usd, Some(0.75));
}

#[test]
fn runs_without_files_count_as_the_history_reports() {
    let mut accounts = accounts("s", None);
    let runs = [
        run("1", Some("t"), 100, Some(0.25)),
        run("2", Some("t"), 10, None),
        run("3", None, 1, None),
        PastRun::new("4", Witness::History, Provider::Codex, at(9)),
    ];
    assert_eq!(accounts.join(runs), joined(3, 0));
    let total = accounts.total();
    assert_eq!((total.requests, total.usage), (10, tokens(116)));
    assert_eq!(total.reported_cost_usd, Some(0.25));
    let sessions = accounts.by(Dimension::Session);
    let names: Vec<_> = sessions.iter().filter_map(|s| s.name.as_deref()).collect();
    assert_eq!(names, ["3", "s", "t"]);
}

#[test]
fn a_cost_that_the_files_tell_is_not_counted_again() {
    let mut accounts = accounts("s", Some(2.0));
    assert_eq!(
        accounts.join([run("1", Some("s"), 100, Some(0.25))]),
        joined(0, 0)
    );
    assert_eq!(accounts.total().reported_cost_usd, Some(2.0));
}

#[test]
fn of_two_witnesses_of_a_session_one_counts() {
    for known in ["s", "other"] {
        let mut accounts = accounts(known, None);
        let mut tick = run("tick", Some("s"), 100, Some(0.5));
        tick.witness = Witness::Loop;
        accounts.join([tick.clone(), run("1", Some("s"), 100, Some(0.25)), tick]);
        assert_eq!(accounts.total().reported_cost_usd, Some(0.25), "{known}");
    }
}

#[test]
fn only_runs_in_the_requested_period_count() {
    let mut accounts = Accounts::new(Some(at(5)), Some(at(9)), TimeZone::UTC);
    assert_eq!(accounts.join([run("1", None, 100, None)]), joined(1, 0));
    assert_eq!(
        accounts.total().requests,
        0,
        "it began at 9, which is too late"
    );
}

#[test]
fn costs_in_an_agents_ledger_are_those_of_its_sessions() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(".orchestrator")).unwrap();
    let line = |session: &str, cost: &str, source: &str| {
        format!(
            r#"{{"ts":"2026-11-22T19:00:00Z","session_id":{session},"model":"m","input_tokens":1,"output_tokens":1,"cache_read_tokens":0,"cache_write_tokens":0,"reasoning_tokens":0,"premium_requests":0.0,"cost_usd":{cost},"cost_source":{source}}}"#
        )
    };
    let text = [
        line("\"s\"", "0.5", "\"reported\""),
        line("\"s\"", "7.0", "\"estimated\""),
        line("\"unknown\"", "7.0", "\"reported\""),
        line("null", "7.0", "\"reported\""),
        line("\"s\"", "null", "null"),
        // As written by another program.
        r#"{"ts":"2026-11-22T19:00:00Z","session_id":"s","model":"m","input_tokens":1}"#.to_owned(),
        "no JSON".to_owned(),
        line("\"s\"", "0.25", "\"reported\""),
    ];
    fs::write(folder.path().join(TICKS), text.join("\n")).unwrap();
    let mut accounts = accounts("s", None);
    let mut record = Record::new(Provider::Claude, "s".into(), at(1));
    record.key = Some(Key::of(Provider::Claude, &["first"]));
    record.directory = Some(folder.path().to_str().unwrap().into());
    accounts.add(record);
    let ticks = accounts.ticks();
    let costs: Vec<_> = ticks.iter().map(|tick| tick.cost_usd).collect();
    assert_eq!(costs, [Some(0.5), Some(0.25)]);
    assert_eq!(accounts.join(ticks), joined(0, 2));
    assert_eq!(accounts.total().reported_cost_usd, Some(0.75));
}

#[test]
fn the_parts_of_a_run_are_one_run() {
    let mut accounts = accounts("s", None);
    let mut codex = run("1", Some("t"), 10, None);
    codex.provider = Provider::Codex;
    let parts = [
        run("1", Some("s"), 100, Some(0.5)),
        codex,
        run("1", Some("u"), 20, None),
    ];
    assert_eq!(accounts.join(parts), joined(1, 1));
    let providers = accounts.by(Dimension::Provider);
    let sums = providers.iter().map(|group| {
        let figures = &group.figures;
        let input = figures.usage.input_tokens.unwrap();
        (
            group.name.as_deref().unwrap(),
            input,
            figures.reported_cost_usd,
        )
    });
    let expected = [("claude", 25, Some(0.5)), ("codex", 10, None)];
    assert_eq!(sums.collect::<Vec<_>>(), expected);
}

#[test]
fn a_run_without_requests_is_reported_as_unpriced() {
    let mut accounts = Accounts::new(None, None, TimeZone::UTC);
    let mut codex = run("1", Some("s"), 100, None);
    (codex.provider, codex.model, codex.requests) = (Provider::Codex, None, None);
    accounts.join([codex]);
    let total = accounts.total();
    assert_eq!((total.requests, total.unpriced_requests), (0, 1));
}

#[test]
fn a_run_is_never_priced_as_one_large_request() {
    let mut accounts = Accounts::new(None, None, TimeZone::UTC);
    let mut gemini = run("1", Some("s"), 1_000_000, None);
    gemini.provider = Provider::Gemini;
    gemini.model = Some("gemini-3-pro-preview".to_owned());
    // Some CLIs count one turn for any number of requests.
    gemini.requests = Some(1);
    accounts.join([gemini]);
    // 2 dollars per million, not 4.
    assert_eq!(accounts.total().estimated_cost_usd, Some(2.0));
}

#[test]
fn sessions_are_grouped_by_the_account_of_their_runs() {
    let mut accounts = accounts("s", None);
    let mut known = run("1", Some("s"), 100, None);
    known.account = Some("work".to_owned());
    let mut unknown = run("2", None, 7, None);
    unknown.account = Some("spare".to_owned());
    accounts.join([known, unknown, run("3", Some("t"), 1, None)]);
    let mut groups: Vec<_> = (accounts.by(Dimension::Account).into_iter())
        .map(|group| (group.name, group.figures.usage.input_tokens))
        .collect();
    groups.sort();
    let expected: [(Option<Arc<str>>, Option<u64>); 3] = [
        (None, Some(1)),
        (Some("spare".into()), Some(7)),
        (Some("work".into()), Some(5)),
    ];
    assert_eq!(groups, expected);
}

#[test]
fn run_of_an_account_after_the_files_end_is_from_the_history() {
    // The file has a request at 10.
    let mut accounts = accounts("s", None);
    let part = |second, account: Option<&str>| {
        let mut part = run("1", Some("s"), 100, None);
        part.at = at(second);
        part.account = account.map(str::to_owned);
        part
    };
    let parts = [
        part(9, Some("work")),
        part(11, Some("spare")),
        part(12, None),
    ];
    assert_eq!(accounts.join(parts), joined(1, 0));
    assert_eq!(accounts.total().usage, tokens(105));
}

#[test]
fn session_of_two_accounts_is_split_by_the_times_of_their_runs() {
    let mut accounts = Accounts::new(None, None, TimeZone::UTC);
    let part = |second, account: &str, usage| {
        let mut part = run("1", Some("s"), usage, None);
        part.at = at(second);
        part.account = Some(account.to_owned());
        part
    };
    // The newest first, as the history has them.
    accounts.join([
        part(30, "work", 4),
        part(20, "spare", 2),
        part(10, "work", 1),
    ]);
    let mut groups: Vec<_> = (accounts.by(Dimension::Account).into_iter())
        .map(|group| (group.name, group.figures.usage.input_tokens))
        .collect();
    groups.sort();
    let expected: [(Option<Arc<str>>, Option<u64>); 2] = [
        (Some("spare".into()), Some(2)),
        (Some("work".into()), Some(5)),
    ];
    assert_eq!(groups, expected);
}
