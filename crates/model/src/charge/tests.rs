use super::*;

#[test]
fn the_published_rows() {
    for (kb, read, create) in [
        (1, 1.00, 4.95),
        (2, 1.04, 6.29),
        (4, 1.14, 6.67),
        (8, 1.33, 7.04),
        (16, 1.67, 9.52),
        (32, 2.19, 11.23),
        (64, 4.76, 22.67),
        (128, 9.95, 48.19),
        (256, 20.28, 98.29),
        (512, 40.95, 184.57),
        (1024, 145.90, 625.0),
        (2048, 291.80, 1250.0),
    ] {
        let bytes = kb * 1024;
        assert_eq!((of_read(bytes).ru(), of_create(bytes, 0).ru()), (read, create), "{kb} KB");
    }
}

#[test]
fn between_below_and_above_the_rows() {
    for (charge, expected) in [
        (of_read(0), "1"),
        (of_read(100), "1"),
        (of_read(1536), "1.02"),
        (of_read(3 * 1024), "1.09"),
        (of_create(1536, 0), "5.62"),
        (of_read(4096 * 1024), "583.6"),
        (of_create(4096 * 1024, 0), "2500"),
    ] {
        assert_eq!(charge.ru().to_string(), expected);
    }
}

#[test]
fn more_bytes_never_cost_less() {
    let sizes = || (0..3_000_000).step_by(777);
    for (smaller, larger) in sizes().zip(sizes().skip(1)) {
        assert!(of_read(smaller).ru() <= of_read(larger).ru());
        assert!(of_create(smaller, 0).ru() <= of_create(larger, 0).ru());
    }
}

/// `1.50` as 150.
fn hundredths(decimal: &str) -> u64 {
    let (whole, part) = decimal.split_once('.').unwrap();
    assert_eq!(part.len(), 2, "{decimal}");
    whole.parse::<u64>().unwrap() * 100 + part.parse::<u64>().unwrap()
}

/// The charge of an example, as the page writes it: `create 500 B, 10 terms`.
fn example(text: &str) -> Charge {
    let words: Vec<&str> = text.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let before = |unit: &str| {
        let at = words.iter().position(|word| *word == unit);
        at.map_or(0, |at| words[at - 1].parse().unwrap())
    };
    let sizes: Vec<usize> = words
        .windows(2)
        .filter(|pair| matches!(pair[1], "B" | "KB"))
        .map(|pair| pair[0].parse::<usize>().unwrap() * if pair[1] == "KB" { 1024 } else { 1 })
        .collect();
    let (terms, items) = (before("terms"), before("items"));
    match words[0] {
        "miss" => Charge::MISS,
        "read" => of_read(sizes[0]),
        "create" => of_create(sizes[0], terms),
        "delete" => of_delete(sizes[0], terms),
        "replace" => of_replace(sizes[0], sizes[1], terms),
        "patch" => of_replace(sizes[0], sizes[1], terms).patched(before("operations")),
        "list" => (0..items).map(|_| of_read(sizes[0])).sum::<Charge>().or_miss(),
        "batch" => (0..items).map(|_| of_create(sizes[0], terms)).sum(),
        "query" => {
            let mut loaded = Loaded::default();
            (0..items).for_each(|_| loaded.add(weight(sizes[0])));
            of_query(loaded, sizes.last().copied().unwrap() as u64)
        }
        other => panic!("{other} is no operation"),
    }
}

/// Each example of the page is worked out here, and its parts are its charge.
#[test]
fn the_examples_of_the_page() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/charges.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut count = 0;
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, asked, _, told, _] = cells.as_slice() else { continue };
        let Some(asked) = asked.strip_prefix('`').and_then(|asked| asked.strip_suffix('`')) else {
            continue;
        };
        if told.parse::<f64>().is_err() {
            continue;
        }
        let charge = example(asked);
        assert_eq!(charge.hundredths(), hundredths(told), "{asked}: {:?}", charge.parts());
        count += 1;
    }
    assert!(count >= 15, "{count} examples");
}

#[test]
fn what_a_charge_is_made_of() {
    let told = |charge: Charge| {
        let parts = charge.parts().into_iter();
        parts.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(";")
    };
    let loaded = Loaded { items: 3, hundredths: 306 };
    for (charge, expected) in [
        (Charge::NOTHING, "total=0.00"),
        (Charge::MISS, "base=1.00;total=1.00"),
        (Charge::from(4.95), "base=4.95;total=4.95"),
        (of_read(1536), "read=1.02;readItems=1;readBytes=1536;total=1.02"),
        (of_create(500, 10), "written=4.95;writtenBytes=500;terms=2.00;termCount=10;total=6.95"),
        (of_delete(500, 0), "removed=4.95;removedBytes=500;total=4.95"),
        (
            of_replace(500, 2048, 4).patched(2),
            "removed=4.95;removedBytes=500;written=6.29;writtenBytes=2048;terms=0.80;termCount=4;\
             patched=0.80;patchedCount=2;total=12.84",
        ),
        (
            of_query(loaded, 1536),
            "base=2.00;loaded=0.918;loadedItems=3;rows=0.3750;rowBytes=1536;total=3.29",
        ),
        (
            of_read(10).plus(of_create(10, 1)),
            "read=1.00;readItems=1;readBytes=10;written=4.95;writtenBytes=10;terms=0.20;\
             termCount=1;total=6.15",
        ),
    ] {
        assert_eq!(told(charge), expected);
    }
}

/// Half a hundredth goes up: 0.25 for a KB is 0.005 for 20.48 bytes.
#[test]
fn a_half_goes_up() {
    let of_rows = |bytes| of_query(Loaded::default(), bytes).hundredths();
    assert_eq!((of_rows(20), of_rows(21), of_rows(61), of_rows(62)), (200, 201, 201, 202));
    assert_eq!(of_query(Loaded { items: 1, hundredths: 105 }, 0).hundredths(), 232);
}
