//! Leases: temporary changes of a user's configuration file.
//!
//! Some CLIs take MCP servers only from their own configuration file.
//! By default a run gives them a private copy ([`McpDelivery::Private`](crate::McpDelivery)) and no file of
//! the user is touched.
//! With `ProjectConfig` or `UserConfig` the file itself gets the entries for the time of the run: that is a
//! lease.
//!
//! # Guarantees
//!
//! - After the last lease the file is restored byte for byte: comments, order, mode and owner included.
//! - Any number of runs, in any number of processes, share a file; each entry goes with its last holder.
//! - A user's edit during the lease stays; only the entries of the lease are removed.
//! - The file is never half written.
//! - A killed holder leaves a journal. The next lease on the file undoes its change, and so does
//!   [`restore`](teamster_mcp_config::lease::restore) or `teamster mcp restore`.
//! - A holder is alive as long as it holds a file lock; process ids are not used.
//!
//! # The life of a lease
//!
//! ```
//! use serde_json::json;
//! use teamster_core::provider::{ConfigEdit, ConfigFormat, ConfigLocation, ConfigTable};
//! use teamster_mcp_config::lease::{Lease, Released};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("settings.json");
//! let original = "{\n  // mine\n  \"theme\": \"dark\"\n}\n";
//! std::fs::write(&file, original)?;
//!
//! let lease = Lease::acquire(&ConfigEdit {
//!     table: ConfigTable { file: file.clone(), format: ConfigFormat::Json, key: "mcpServers" },
//!     entries: vec![("docs".to_owned(), json!({"command": "docs-mcp"}))],
//!     new_file: "",
//!     location: ConfigLocation::Lease,
//! })?;
//! assert!(std::fs::read_to_string(&file)?.contains("docs-mcp"));
//!
//! // Run the CLI here.
//!
//! assert_eq!(lease.release()?, Released::Restored);
//! assert_eq!(std::fs::read_to_string(&file)?, original);
//! # Ok(())
//! # }
//! ```
//!
//! A run does this by itself: it holds the lease from before the start of the CLI until the last process of the
//! run is gone.
//! [`teamster_mcp_config::lease`] describes the mechanism and the order of operations.
