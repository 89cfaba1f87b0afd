//! Ids that no run has.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use teamster_api::{ProblemCode, RunService};
use teamster_fleet::{
    Fleet, FleetLogin, FleetOptions, FleetRole, FleetRuns, FleetUser, server_accounts,
};
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

use super::chaos::{cluster, login, make_streams};
use super::contract::limits;
use super::machine::{LIMIT, block_on};
use super::server::program_or_reason;

/// Starts a cluster with these users, whose passwords are their names, beside an operator. Returns its address too.
fn start(root: &Path, users: &[(&str, FleetRole)]) -> Option<(Vec<cluster::Node>, String)> {
    let program = program_or_reason()?;
    let operator = [("op", FleetRole::Operator)];
    let users = users.iter().chain(&operator).map(|(name, role)| {
        let login = FleetLogin::Password((*name).to_owned());
        FleetUser::new(*name, *role, login).unwrap()
    });
    let accounts = server_accounts("TEAM", &users.collect::<Vec<_>>());
    let config = format!("trace: true\n{accounts}");
    let nodes = cluster::start(&program, root, &config, |number| {
        root.join(format!("n{number}/data"))
    });
    let url = format!("nats://127.0.0.1:{}", nodes[0].port);
    block_on(make_streams(&login(&url, "op"), &limits()));
    Some((nodes, url))
}

async fn runs_of(url: &str, user: &str) -> FleetRuns {
    let fleet = Fleet::connect(FleetOptions::new(login(url, user), user)).await;
    FleetRuns::new(&fleet.unwrap())
}

/// A copy of the records may be behind, so the leader decides: nothing is waited for.
#[test]
fn unknown_id_in_a_cluster_is_read_once() {
    let root = tempfile::tempdir().unwrap();
    let ann = [("ann", FleetRole::Submitter)];
    let Some((_nodes, url)) = start(root.path(), &ann) else {
        return;
    };
    let reads = |id: &str| {
        let read = format!("<<- [PUB $JS.API.DIRECT.GET.KV_tm_runs.$KV.tm_runs.ann.{id} ");
        let logs = (0..3).map(|number| root.path().join(format!("n{number}/log")));
        let texts = logs.map(|log| fs::read_to_string(log).unwrap());
        texts.map(|text| text.matches(&read).count()).sum::<usize>()
    };
    block_on(async {
        let runs = runs_of(&url, "ann").await;
        let mut counts = Vec::new();
        for number in 0..5 {
            let id = format!("unknown-{number}");
            let refused = runs.show(&id).await.unwrap_err();
            // The servers may still elect leaders.
            if refused.code == Some(ProblemCode::RunNotFound) {
                counts.push(reads(&id));
            }
        }
        assert!(counts.contains(&1), "{counts:?}");
    });
}

/// The leader does not answer it, and that is no answer to its other requests about the run.
#[test]
fn unknown_id_is_unknown_to_requests_of_a_watcher_at_once() {
    let root = tempfile::tempdir().unwrap();
    let eve = [("eve", FleetRole::Watcher)];
    let Some((_nodes, url)) = start(root.path(), &eve) else {
        return;
    };
    block_on(async {
        let runs = runs_of(&url, "eve").await;
        let until_there = async {
            // The servers may still elect leaders.
            while runs.show("unknown").await.unwrap_err().code != Some(ProblemCode::RunNotFound) {}
        };
        timeout(LIMIT, until_there).await.unwrap();
        let mut shown = JoinSet::new();
        for _ in 0..100 {
            let runs = runs.clone();
            shown.spawn(async move { runs.show("unknown").await.unwrap_err() });
            yield_now().await;
        }
        let messages = shown.join_all().await.into_iter().map(|it| it.message);
        let messages: BTreeSet<_> = messages.collect();
        assert_eq!(messages, BTreeSet::from(["no run \"unknown\"".to_owned()]));
    });
}
