//! Memory of processes at rest.

/// Releases the pages of the program and its libraries that this process has not changed: 19 of the 23 MiB of a
/// session at rest (`VmRSS` of a release build on `x86_64`). They stay in the system's cache of files, so the ones
/// that are needed again are mapped without reading the disk.
#[cfg(target_os = "linux")]
pub(crate) fn release_code() {
    use nix::sys::mman::{MmapAdvise, madvise};

    // Without `/proc` nothing is released.
    let Ok(mappings) = std::fs::read_to_string("/proc/self/smaps") else {
        return;
    };
    for (start, end) in unchanged_files(&mappings) {
        let start = std::ptr::with_exposed_provenance_mut(start);
        let Some(start) = std::ptr::NonNull::new(start) else {
            continue;
        };
        #[expect(unsafe_code, reason = "`madvise` is unsafe: it can discard data")]
        // SAFETY: the mapping shows a file, cannot be written, and has no page that differs from the file. So the
        // next access reads the same bytes from the file again.
        let released =
            unsafe { madvise(start, end - start.addr().get(), MmapAdvise::MADV_DONTNEED) };
        // The pages stay then.
        let _ = released;
    }
}

/// No effect on other systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn release_code() {}

/// Returns the addresses of read-only mappings of files without changed pages, from `/proc/self/smaps`.
#[cfg(target_os = "linux")]
fn unchanged_files(smaps: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut current = None;
    let mut unchanged = 0;
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            // Changed pages are in memory or swapped out.
            Some("Anonymous:" | "Swap:") => {
                unchanged += u32::from(words.next() == Some("0"));
                if unchanged == 2 {
                    found.extend(current.take());
                }
            }
            Some(range) if !range.ends_with(':') => {
                current = read_only_file(range, words);
                unchanged = 0;
            }
            _ => {}
        }
    }
    found
}

/// Parses the first line of a mapping. Returns `None` for another one than a read-only one of a file.
#[cfg(target_os = "linux")]
fn read_only_file<'a>(
    range: &str,
    mut words: impl Iterator<Item = &'a str>,
) -> Option<(usize, usize)> {
    let (start, end) = range.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let permissions = words.next()?;
    let is_read_only = permissions.starts_with("r-") && permissions.ends_with('p');
    let is_file = words.nth(3)?.starts_with('/');
    (is_read_only && is_file).then_some((address(start)?, address(end)?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_unchanged_files_are_released() {
        let mapping = |head: &str, anonymous: u32, swap: u32| {
            format!(
                "{head}\nSize: 8 kB\nAnonymous: {anonymous} kB\nSwap: {swap} kB\nSwapPss: 0 kB\n"
            )
        };
        let smaps = [
            mapping("1000-3000 r-xp 00001000 fe:00 71 /opt/a program", 0, 0),
            mapping("3000-5000 r--p 00003000 fe:00 71 /opt/a program", 4, 0),
            mapping("5000-7000 rw-p 00005000 fe:00 71 /opt/a program", 0, 0),
            mapping("7000-9000 r--p 00000000 fe:00 72 /lib/libc.so.6", 0, 0),
            mapping("9000-b000 r--s 00000000 fe:00 73 /state/store.db-shm", 0, 0),
            mapping("f000-f100 r--p 00006000 fe:00 71 /opt/a program", 0, 4),
            mapping("b000-d000 r--p 00000000 00:00 0", 0, 0),
            mapping("d000-f000 r-xp 00000000 00:00 0 [vdso]", 0, 0),
        ];
        assert_eq!(
            unchanged_files(&smaps.concat()),
            [(0x1000, 0x3000), (0x7000, 0x9000)]
        );
        // The program continues after its own code was released.
        release_code();
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        assert!(!unchanged_files(&smaps).is_empty());
    }
}
