//! Tests of inserting entries into configuration files and removing them.
#![allow(clippy::unwrap_used)]

mod dice;
mod forms;
mod json_files;
mod json_properties;
mod refused;
mod removed;
mod support;
mod toml_files;
mod toml_properties;
