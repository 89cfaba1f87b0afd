//! Executor of the tasks of runs.

use std::io;
use std::sync::Mutex;

use teamster_core::sync::lock;
use tokio::runtime::{Builder, Handle};

/// Returns the caller's Tokio runtime, or else one of this crate's own, whose thread lives as long as the process.
///
/// # Errors
///
/// Fails if the own runtime or its thread cannot be created.
pub fn engine() -> io::Result<Handle> {
    static OWN: Mutex<Option<Handle>> = Mutex::new(None);

    if let Ok(handle) = Handle::try_current() {
        return Ok(handle);
    }
    let mut own = lock(&OWN);
    if let Some(handle) = &*own {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("teamster-engine".into())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    *own = Some(handle.clone());
    Ok(handle)
}
