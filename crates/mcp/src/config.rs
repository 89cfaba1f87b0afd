//! Servers from the `mcpServers` JSON that users already have.
