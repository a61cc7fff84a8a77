//! What a snapshot shows, and in which order.

use super::{Bench, Check, HERE, START, keys, range, scan};
use crate::{Bucket, Direction, KeyRange, Snapshot};

pub(super) const CHECKS: &[Check] = &[
    a_snapshot_stays_as_it_was,
    several_keys_are_read_in_their_order,
    a_commit_makes_another_mark,
    a_scan_is_in_byte_order_and_stops_before_its_end,
    a_scan_goes_both_ways,
    a_scan_stops_at_its_limit,
    a_scan_of_nothing_is_empty,
    a_prefix_is_a_range,
    a_scan_stays_in_its_bucket,
    values_may_be_empty_and_large,
    what_is_barren_is_left_out_until_something_is_put_there,
];

fn a_snapshot_stays_as_it_was(bench: &Bench) {
    bench.put(HERE, "a", "1");
    bench.put(HERE, "b", "1");
    let before = bench.snapshot();
    bench.put(HERE, "a", "2");
    bench.put(HERE, "c", "2");
    assert_eq!(super::get(&*before, HERE, "a").as_deref(), Some("1"));
    assert_eq!(super::get(&*before, HERE, "c"), None);
    assert_eq!(scan(&*before, HERE, &range("", "z")), "a b");
    assert_eq!(before.head(HERE).lsn, 2);
    // Again, after a newer snapshot has read the same keys.
    assert_eq!(bench.get(HERE, "a").as_deref(), Some("2"));
    assert_eq!(super::get(&*before, HERE, "a").as_deref(), Some("1"));
}

fn several_keys_are_read_in_their_order(bench: &Bench) {
    for key in ["a", "b", "c"] {
        bench.put(HERE, key, key);
    }
    bench.put(Bucket(HERE.0 + 1), "d", "elsewhere");
    let before = bench.snapshot();
    bench.put(HERE, "b", "2");
    let long = vec![b'x'; crate::KEY_BYTES_MAX + 1];
    let keys: [&[u8]; 7] = [b"c", b"no", b"a", b"c", b"b", b"d", &long];
    // Twice: the second time some of them come from a cache.
    for _ in 0..2 {
        let read = |snapshot: &dyn Snapshot| {
            let values = snapshot.get_many(HERE, &keys).unwrap();
            assert_eq!(snapshot.hints().get_many_once(HERE, &keys).as_ref(), Ok(&values));
            let text = |value: Option<bytes::Bytes>| {
                value
                    .map_or(String::from("-"), |value| String::from_utf8_lossy(&value).into_owned())
            };
            values.into_iter().map(text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(read(&*before), "c - a c b - -");
        assert_eq!(read(&*bench.snapshot()), "c - a c 2 - -");
    }
    assert!(before.get_many(HERE, &[]).unwrap().is_empty());
}

fn a_commit_makes_another_mark(bench: &Bench) {
    let first = bench.snapshot().mark();
    assert_eq!(bench.snapshot().mark(), first);
    bench.put(HERE, "a", "1");
    assert_ne!(bench.snapshot().mark(), first);
}

fn a_scan_is_in_byte_order_and_stops_before_its_end(bench: &Bench) {
    for key in ["b", "a", "ab", "c", "B", "a\u{ff}"] {
        bench.put(HERE, key, key);
    }
    let snapshot = bench.snapshot();
    assert_eq!(scan(&*snapshot, HERE, &range("", "z")), "B a ab a\u{ff} b c");
    assert_eq!(scan(&*snapshot, HERE, &range("ab", "c")), "ab a\u{ff} b");
    assert_eq!(scan(&*snapshot, HERE, &range("aa", "bb")), "ab a\u{ff} b");
    let pairs = snapshot.scan(HERE, &range("b", "c"), Direction::Forward, 10).unwrap();
    assert_eq!(pairs, [("b".into(), "b".into())]);
}

fn a_scan_goes_both_ways(bench: &Bench) {
    for key in ["a", "b", "c", "d"] {
        bench.put(HERE, key, "1");
    }
    let backward = |range: &KeyRange, limit| {
        keys(&bench.snapshot().scan(HERE, range, Direction::Backward, limit).unwrap())
    };
    assert_eq!(backward(&range("a", "d"), 10), "c b a");
    assert_eq!(backward(&range("", "z"), 2), "d c");
    assert_eq!(backward(&range("b", "bb"), 2), "b");
}

fn a_scan_stops_at_its_limit(bench: &Bench) {
    for key in ["a", "b", "c"] {
        bench.put(HERE, key, "1");
    }
    let first = |limit| {
        keys(&bench.snapshot().scan(HERE, &range("", "z"), Direction::Forward, limit).unwrap())
    };
    assert_eq!(first(0), "");
    assert_eq!(first(2), "a b");
    assert_eq!(first(3), "a b c");
    assert_eq!(first(4), "a b c");
}

fn a_scan_of_nothing_is_empty(bench: &Bench) {
    bench.put(HERE, "a", "1");
    for (start, end) in [("b", "z"), ("a", "a"), ("z", "a"), ("", "")] {
        for direction in [Direction::Forward, Direction::Backward] {
            let pairs = bench.snapshot().scan(HERE, &range(start, end), direction, 10);
            assert_eq!(pairs, Ok(Vec::new()));
        }
    }
}

fn a_prefix_is_a_range(bench: &Bench) {
    for key in ["a", "aa", "ab", "b"] {
        bench.put(HERE, key, "1");
    }
    let snapshot = bench.snapshot();
    assert_eq!(scan(&*snapshot, HERE, &KeyRange::prefix(b"a")), "a aa ab");
    assert_eq!(scan(&*snapshot, HERE, &KeyRange::prefix(b"")), "a aa ab b");
    assert_eq!(KeyRange::prefix(&[1, 0xFF, 0xFF]).end, [2]);
}

fn a_scan_stays_in_its_bucket(bench: &Bench) {
    for bucket in [6, 7, 8] {
        bench.put(Bucket(bucket), "a", "1");
    }
    let all = KeyRange::prefix(b"");
    for direction in [Direction::Forward, Direction::Backward] {
        let pairs = bench.snapshot().scan(HERE, &all, direction, 10).unwrap();
        assert_eq!(keys(&pairs), "a");
    }
}

fn values_may_be_empty_and_large(bench: &Bench) {
    let large = "v".repeat(300_000);
    bench.put(HERE, "empty", "");
    bench.put(HERE, "large", &large);
    for _ in 0..2 {
        assert_eq!(bench.get(HERE, "empty").as_deref(), Some(""));
        assert_eq!(bench.get(HERE, "large").as_ref(), Some(&large));
    }
}

fn what_is_barren_is_left_out_until_something_is_put_there(bench: &Bench) {
    let alive = |snapshot: &dyn Snapshot, bucket, direction| {
        keys(&snapshot.hints().scan_alive(bucket, &range("", "z"), direction, 10).unwrap())
    };
    let forward = |snapshot: &dyn Snapshot| alive(snapshot, HERE, Direction::Forward);
    for key in ["a", "b", "c", "d", "e"] {
        bench.put(HERE, key, "1");
        bench.put(Bucket(8), key, "1");
    }
    let earlier = bench.snapshot();
    bench.setup.wall.set(START + 1);
    let here = bench.snapshot();
    assert_eq!(here.mark(), earlier.mark());
    here.hints().barren(HERE, &range("b", "d"));
    here.hints().barren(HERE, &range("e", "e"));
    assert_eq!(forward(&*here), "a d e");
    assert_eq!(alive(&*here, HERE, Direction::Backward), "e d a");
    let two = here.hints().scan_alive(HERE, &range("", "z"), Direction::Forward, 2).unwrap();
    assert_eq!(keys(&two), "a d");
    assert_eq!(scan(&*here, HERE, &range("", "z")), "a b c d e", "it is there all the same");
    assert_eq!(forward(&*earlier), "a b c d e", "at this time it is alive");
    assert_eq!(alive(&*here, Bucket(8), Direction::Forward), "a b c d e");

    bench.put(HERE, "bb", "1");
    assert_eq!(forward(&*bench.snapshot()), "a bb d e");
    bench.put(HERE, "c", "2");
    assert_eq!(forward(&*bench.snapshot()), "a bb c d e");
    assert_eq!(forward(&*earlier), "a b c d e");

    // Said of a snapshot after which something was put: nobody knows where.
    let here = bench.snapshot();
    bench.put(HERE, "dd", "1");
    here.hints().barren(HERE, &range("d", "z"));
    assert_eq!(forward(&*bench.snapshot()), "a bb c d dd e");
}
