//! Token and cost accounting from what coding-agent CLIs leave on disk.
#![warn(missing_docs)]
