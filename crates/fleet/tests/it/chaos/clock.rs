//! A clock of one process that is wrong: what asks libc for the time gets another one. Linux, with a C compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Made by hand: replaces the function of libc. The file at `CLOCK_FILE` has the difference in seconds.
const SOURCE: &str = r#"#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *time) {
  int failed = syscall(SYS_clock_gettime, clock, time);
  const char *name = getenv("CLOCK_FILE");
  if (!failed && clock == CLOCK_REALTIME && name) {
    FILE *file = fopen(name, "r");
    long difference;
    if (file) {
      if (fscanf(file, "%ld", &difference) == 1) time->tv_sec += difference;
      fclose(file);
    }
  }
  return failed;
}
"#;

/// A library that changes the time of the processes that load it.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    /// Builds the library. Returns `None` where that is not possible.
    pub(crate) fn build(folder: &Path) -> Option<Self> {
        if !cfg!(target_os = "linux") {
            return None;
        }
        let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
        fs::write(&source, SOURCE).unwrap();
        let mut compile = Command::new("cc");
        compile
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&source);
        let is_built = compile.output().is_ok_and(|output| output.status.success());
        is_built.then(|| Self {
            library,
            file: folder.join("clock"),
        })
    }

    /// The variables of a process with this clock.
    pub(crate) fn variables(&self) -> [(&str, &str); 2] {
        [
            ("LD_PRELOAD", self.library.to_str().unwrap()),
            ("CLOCK_FILE", self.file.to_str().unwrap()),
        ]
    }

    /// Sets by how many seconds the time is wrong.
    pub(crate) fn jump(&self, seconds: i64) {
        // Replaced as a whole: it is read all the time.
        let draft = self.file.with_extension("new");
        fs::write(&draft, seconds.to_string()).unwrap();
        fs::rename(&draft, &self.file).unwrap();
    }
}
