//! Tests with git.

mod it {
    pub(crate) mod repository;
    mod upload;
    mod worktree;
}
