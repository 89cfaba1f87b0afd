//! Tests with git.

mod it {
    mod changes;
    pub(crate) mod ended;
    mod killed;
    pub(crate) mod repository;
    mod result;
    mod take;
    mod upload;
    mod worktree;
}
