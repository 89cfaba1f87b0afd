//! Tests with git.
#![expect(clippy::unwrap_used, reason = "also in the helpers of tests")]

mod it {
    mod changes;
    mod discard;
    pub(crate) mod ended;
    mod killed;
    pub(crate) mod lfs;
    pub(crate) mod repository;
    mod result;
    mod shapes;
    mod stays;
    mod take;
    mod upload;
    mod worktree;
}
