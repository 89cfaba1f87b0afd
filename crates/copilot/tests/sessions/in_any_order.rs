//! Lines of recorded sessions in random order, between orders of all kinds.

use teamster_acp::replay::in_any_order;
use teamster_copilot::Copilot;
use teamster_core::{ExecuteParams, PermissionMode, SessionOptions, SessionProvider};

#[test]
fn every_turn_is_a_run_and_every_order_is_settled_once() {
    let recordings = [
        include_str!("acp_errors/stdout.ndjson"),
        include_str!("acp_second_session/stdout.ndjson"),
        include_str!("acp_tools/stdout.ndjson"),
    ];
    for mode in [PermissionMode::Default, PermissionMode::Bypass] {
        in_any_order(&recordings, &["hi", "/context"], || {
            let mut params = ExecuteParams::new("");
            params.permission = mode;
            Copilot.protocol(&SessionOptions::new(params))
        });
    }
}
