//! Runs of a server keep the contract of all services of runs: over HTTP, each with its runner.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use teamster_client::Client;
use teamster_testkit::run_service::{CLAUDE, ScriptedClaude, contract};
use tokio::runtime::Runtime;

use super::Machine;

#[test]
fn runs_of_a_server_keep_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("claude");
    fs::write(&program, CLAUDE).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let machine = Machine::new(folder.path(), &program);
    let url = format!("http://{}", machine.served.address);
    let client = Client::new(&url, Some(&machine.served.token)).unwrap();
    let service = ScriptedClaude::new(Arc::new(client));
    Runtime::new().unwrap().block_on(contract(&service));
}
