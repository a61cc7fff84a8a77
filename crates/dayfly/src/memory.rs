//! How much memory there is: the machine's, or what the group of processes that
//! we run in may take, such as a container, if that is less.

use std::fs::read_to_string;
use std::path::Path;

pub(crate) const MIB: u64 = 1024 * 1024;

/// What the cache takes of the memory there is.
const CACHE_PART: u64 = 8;
const CACHE_BYTES_MIN: u64 = 32 * MIB;

/// The cache where nobody says how much memory there is.
const CACHE_BYTES_UNKNOWN: u64 = 256 * MIB;

/// How large the cache may grow when nobody says.
pub(crate) fn cache_bytes() -> u64 {
    cache_of(memory_bytes(Path::new("/")))
}

fn cache_of(memory: Option<u64>) -> u64 {
    memory.map_or(CACHE_BYTES_UNKNOWN, |memory| (memory / CACHE_PART).max(CACHE_BYTES_MIN))
}

/// The memory there is, if the system under `root` tells.
fn memory_bytes(root: &Path) -> Option<u64> {
    let groups = read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| group_bytes(root, line));
    machine_bytes(root).into_iter().chain(limits).min()
}

/// Of `MemTotal:   24683932 kB`.
fn machine_bytes(root: &Path) -> Option<u64> {
    let text = read_to_string(root.join("proc/meminfo")).ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The least that a group and those around it may take. A line is
/// `number:controllers:path`; the newer kind of groups names no controllers.
fn group_bytes(root: &Path, line: &str) -> Option<u64> {
    let (_, rest) = line.split_once(':')?;
    let (controllers, path) = rest.split_once(':')?;
    let (mount, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return None,
    };
    // Inside a container the path may be one that only the host sees; the folder
    // of all groups is then the container's own.
    let path = Path::new(path.trim_start_matches('/'));
    let limit = |group: &Path| {
        let text = read_to_string(root.join(mount).join(group).join(file)).ok()?;
        text.trim().parse().ok()
    };
    path.ancestors().filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system that is made of these files.
    fn memory_of(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        memory_bytes(root.path())
    }

    #[test]
    fn the_least_of_machine_and_groups_counts() {
        let machine = ("proc/meminfo", "MemFree:  7 kB\nMemTotal:       16000000 kB\n");
        let newer = ("proc/self/cgroup", "0::/a/b\n");
        let older = ("proc/self/cgroup", "5:cpu:/x\n4:cpuset,memory:/a/b\n0::/\n");
        for (files, expected) in [
            (vec![], None),
            (vec![("proc/meminfo", "MemTotal: much\n")], None),
            (vec![machine], Some(16_384_000_000)),
            (vec![machine, newer], Some(16_384_000_000)),
            (vec![machine, newer, ("sys/fs/cgroup/a/b/memory.max", "max\n")], Some(16_384_000_000)),
            (vec![machine, newer, ("sys/fs/cgroup/a/b/memory.max", "900000\n")], Some(900_000)),
            (vec![machine, newer, ("sys/fs/cgroup/a/memory.max", "800000\n")], Some(800_000)),
            // As a container sees it: the path is the host's.
            (vec![machine, newer, ("sys/fs/cgroup/memory.max", "700000\n")], Some(700_000)),
            (
                vec![machine, older, ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "600000")],
                Some(600_000),
            ),
            // What an older group says that has no limit.
            (
                vec![
                    machine,
                    older,
                    ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
                ],
                Some(16_384_000_000),
            ),
            (vec![newer, ("sys/fs/cgroup/a/b/memory.max", "500000\n")], Some(500_000)),
        ] {
            assert_eq!(memory_of(&files), expected, "{files:?}");
        }
    }

    #[test]
    fn the_cache_is_a_part_of_the_memory() {
        for (memory, cache) in [
            (None, 256 * MIB),
            (Some(64 * MIB), 32 * MIB),
            (Some(1024 * MIB), 128 * MIB),
            (Some(65_536 * MIB), 8192 * MIB),
        ] {
            assert_eq!(cache_of(memory), cache, "{memory:?}");
        }
    }
}
