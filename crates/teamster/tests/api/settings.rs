//! Settings are deserialized from an application's own configuration.

use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use teamster::agent_loop::supervisor::Policy;
use teamster::agent_loop::{AdapterKind, Pace, TickBudget};
use teamster::doctor::DoctorOptions;
use teamster::embedded::EmbeddedConfig;
use teamster::runner::LogLimits;

fn read<T: DeserializeOwned>(settings: Value) -> T {
    serde_json::from_value(settings).unwrap()
}

#[test]
fn settings_are_read_from_a_file() {
    let pace: Pace = read(json!({"minSleep": 5}));
    assert_eq!(pace, Pace::default().min_sleep(5));
    let budget: TickBudget = read(json!({"tokens": 1000, "usd": 0.5}));
    assert_eq!(
        (budget.tokens, budget.usd, budget.turns),
        (Some(1000), Some(0.5), None)
    );
    assert_eq!(read::<AdapterKind>(json!("cold")), AdapterKind::Cold);
    let policy: Policy = read(json!({"firstDelay": "3s"}));
    assert_eq!(
        policy,
        Policy::default().first_delay(Duration::from_secs(3))
    );
    assert_eq!(read::<LogLimits>(json!({"bytes": 4096})).bytes, 4096);
    let doctor: DoctorOptions = read(json!({"limit": "1s", "programs": {"claude": "/opt/claude"}}));
    assert_eq!(doctor.limit, Duration::from_secs(1));
    assert_eq!(doctor.programs["claude"], Path::new("/opt/claude"));
    let embedded: EmbeddedConfig = read(json!({"modelProvider": "anthropic", "apiKey": "k"}));
    assert_eq!(embedded.model_provider.as_deref(), Some("anthropic"));
    assert_eq!(embedded.api_key.as_deref(), Some("k"));
}

#[test]
fn a_misspelt_setting_is_refused_by_its_name() {
    let error = serde_json::from_value::<Pace>(json!({"minSlep": 5})).unwrap_err();
    assert!(error.to_string().contains("minSlep"), "{error}");
}
