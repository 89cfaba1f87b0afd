//! Bodies over HTTP and what a runner reads: specs of runs and sessions, commands and entries of a log.

use serde::Serialize;
use serde::de::DeserializeOwned;
use teamster_api::{Command, RunLogEntry, RunSpec, SessionSpec};
use teamster_core::AgentError;

use super::Target;
use crate::harness::{check_read_back, json};

pub fn target() -> Target {
    Target::new("specs", &["fuzz/seeds/specs"], |data| {
        check::<RunSpec>(data, |it| it.check());
        check::<SessionSpec>(data, |it| it.check());
        if let Ok(entry) = serde_json::from_slice::<RunLogEntry>(data) {
            check_read_back(&entry);
        }
        if let Ok(command) = serde_json::from_slice::<Command>(data) {
            let written = json(&command);
            let read = serde_json::from_str::<Command>(&written);
            assert_eq!(read.map(|it| json(&it)).ok(), Some(written));
        }
    })
}

fn check<T: Serialize + DeserializeOwned + PartialEq>(
    data: &[u8],
    check: fn(&T) -> Result<(), AgentError>,
) {
    let Ok(spec) = serde_json::from_slice::<T>(data) else {
        return;
    };
    check_read_back(&spec);
    if let Err(error) = check(&spec) {
        check_read_back(&error);
        assert!(error.parameter().is_some(), "{error}: of which parameter?");
    }
}
