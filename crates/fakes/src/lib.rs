#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod fake_agent;
pub mod fake_mcp_server;
pub mod stand_in;

/// Writes a program, such as a shell script, that every user may execute.
pub fn write_program(path: &std::path::Path, text: impl AsRef<[u8]>) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, text)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
}
