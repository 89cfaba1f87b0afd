//! The targets.

mod bytes;
mod config;
mod editor;
mod log;
mod output;
mod specs;

/// A target.
pub struct Target {
    /// Its name.
    pub name: String,
    /// Files and folders of inputs to begin with, below the root of the repository.
    pub seeds: Vec<String>,
    /// Takes an input; panics if it finds a fault.
    pub run: Box<dyn Fn(&[u8]) + Send + Sync>,
}

impl Target {
    fn new(
        name: impl Into<String>,
        seeds: &[&str],
        run: impl Fn(&[u8]) + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            seeds: seeds.iter().map(|seed| (*seed).to_owned()).collect(),
            run: Box::new(run),
        }
    }
}

/// Returns all targets.
pub fn all() -> Vec<Target> {
    let mut all = output::targets();
    all.extend(bytes::targets());
    all.extend(config::targets());
    all.push(editor::target());
    all.push(log::target());
    all.push(specs::target());
    all
}
