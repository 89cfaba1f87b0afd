//! Runs with named accounts, which the machine of a worker has or not.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use teamster_api::{QueueReason, RunHandle, RunSpec};
use teamster_core::RunStatus;

use super::machine::{Machine, Shared, block_on, end, runs, until_workers};
use super::placement::{tells, until_waits};

#[test]
fn run_goes_to_the_worker_with_its_account_and_holds_no_other() {
    let server = server_or_skip!();
    let shared = Shared::answering();
    let resets = SystemTime::now() + Duration::from_hours(1);
    let resets = resets.duration_since(UNIX_EPOCH).unwrap().as_secs();
    // Made by hand: what Claude Code prints when a limit is reached.
    let limit = format!(
        r#"printf '{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":{resets},"rateLimitType":"five_hour"}}}}\n'"#
    );
    let agent = tells(&shared).replace("while [ -d", &format!("{limit}\n      while [ -d"));
    let config = tempfile::tempdir().unwrap();
    fs::create_dir(config.path().join("teamster")).unwrap();
    let accounts = "[work]\nagent = 'claude'\nenv.ANTHROPIC_API_KEY = 'sk-ant-made-up-2'\n";
    fs::write(config.path().join("teamster/accounts.toml"), accounts).unwrap();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let _without = Machine::start(&server, "w1", &agent);
        until_workers(&fleet, 1).await;
        let mut spec = RunSpec::new("claude", "hello");
        spec.accounts = vec!["work".to_owned()];
        let run = RunHandle::start(service, "run", spec).await.unwrap();
        let detail = until_waits(&run, QueueReason::Refused).await;
        assert!(detail.contains("no such account"), "{detail}");
        let variables = [("XDG_CONFIG_HOME", config.path().to_str().unwrap())];
        let _with = Machine::with(&server, "w2", &agent, None, &variables);
        assert_eq!(end(&run).await, RunStatus::Completed);
        assert_eq!(shared.count(), 1);
        // The limit is that of the account, not of the agent's own login.
        assert_eq!(fleet.holds().await.unwrap(), []);
    });
}
