//! Published values, and those that the Python SDK computes.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::partition_key::Component;

fn definition(version: u32) -> PartitionKeyDefinition {
    PartitionKeyDefinition::parse(&json!({"paths": ["/a"], "version": version})).unwrap()
}

fn levels(count: usize) -> PartitionKeyDefinition {
    let paths = ["/a", "/b", "/c"];
    PartitionKeyDefinition::parse(&json!({"paths": paths[..count], "kind": "MultiHash"})).unwrap()
}

fn hex(definition: &PartitionKeyDefinition, header: &str) -> String {
    of(definition, &PartitionKey::parse_header(header).unwrap()).to_hex()
}

#[test]
fn one_component_in_both_versions() {
    for (header, v1, v2) in [
        (r#"[""]"#, "05C1CF33970FF80800", "32E9366E637A71B4E710384B2F4970A0"),
        (r#"["redmond"]"#, "05C1EFE313830C087366656E706F6500", "22E342F38A486A088463DFF7838A5963"),
        (
            r#"["partitionKey"]"#,
            "05C1E1B3D9CD2608716273756A756A706F4C667A00",
            "013AEFCF77FA271571CF665A58C933F1",
        ),
        ("[0]", "05C1BF6DA11560058000", "155B95BEDAC4B1E9EC1CDC9BB0DDDE58"),
        ("[-0.0]", "05C1BF6DA11560058000", "155B95BEDAC4B1E9EC1CDC9BB0DDDE58"),
        ("[1]", "05C1ED172B6B2605BFF0", "20CD98B339BA78A5D0CF6953B87070B0"),
        ("[5.5]", "05C1D7A771716C05C016", "0E2EE47829D1AF775EEFB6540FD1D0ED"),
        ("[true]", "05C1D7C5A903D803", "0E711127C5B5A8E4726AC6DD306A3E59"),
        ("[false]", "05C1DB857D857C02", "2FE1BE91E90A3439635E0E9E37361EF2"),
        ("[null]", "05C1ED45D7475601", "378867E4430E67857ACE5C908374FE16"),
        ("[{}]", "05C1D529E345DC00", "11622DAA78F835834610ABE56EFF5CB5"),
        ("[]", "", ""),
    ] {
        assert_eq!(hex(&definition(1), header), v1, "{header} V1");
        assert_eq!(hex(&definition(2), header), v2, "{header} V2");
        assert_eq!(hex(&levels(1), header), v2, "{header} MultiHash");
    }
}

/// What the SDK for Python computes, for its negative integers aside, which it
/// hashes wrongly in version 1.
#[test]
fn more_values_in_both_versions() {
    let letters = |count: usize| format!("[\"{}\"]", "a".repeat(count));
    let cut = |start: &str, count: usize| format!("{start}08{}", "62".repeat(count));
    for (header, v1, v2) in [
        (
            "[-128]".to_owned(),
            "05C1D73349F54C053FA0".to_owned(),
            "01DAEDABF913540367FE219B2AD06148",
        ),
        (
            "[127]".to_owned(),
            "05C1DD539DDFCC05C05FE0".to_owned(),
            "0C507ACAC853ECA7977BF4CEFB562A25",
        ),
        (
            "[-9223372036854775808]".to_owned(),
            "05C1DB35F33D1C053C20".to_owned(),
            "23D5C6395512BDFEAFADAD15328AD2BB",
        ),
        (
            "[9223372036854775807]".to_owned(),
            "05C1B799AB2DD005C3E0".to_owned(),
            "2EDB959178DFCCA18983F89384D1629B",
        ),
        (
            "[-2147483648]".to_owned(),
            "05C1DFBF252BCC053E20".to_owned(),
            "0B1660D5233C3171725B30D4A5F4CC1F",
        ),
        (
            "[2147483647]".to_owned(),
            "05C1E1F503DFB205C1DFFFFFFFFC".to_owned(),
            "2D9349D64712AEB5EB1406E2F0BE2725",
        ),
        (
            "[5e-324]".to_owned(),
            "05C1E5C91F4D3005800101010101010102".to_owned(),
            "0E6CBA63A280927DE485DEF865800139",
        ),
        (
            "[1.7976931348623157e308]".to_owned(),
            "05C1CBE367C53005FFEFFFFFFFFFFFFFFE".to_owned(),
            "31424D996457102634591FF245DBCC4D",
        ),
        (letters(99), cut("05C1E9CD098BB2", 99) + "00", "3C02F609961C32AAC2B912B940D1209A"),
        (letters(100), cut("05C1EB5921F706", 100) + "00", "0DBD7D229437BB665DE6417747994D57"),
    ] {
        assert_eq!(hex(&definition(1), &header), v1, "{header} V1");
        assert_eq!(hex(&definition(2), &header), v2, "{header} V2");
    }
}

/// The hashes alone, from the baseline of the SDK for .NET.
#[test]
fn published_hashes_of_numbers() {
    for (header, v1, v2) in [
        ("[-1]", 0x452B_DBE7_u32, "19938E7A936C1C5B9E3AE842BBC16839"),
        ("[-1.7976931348623157e308]", 0xE38D_D8A1, "27050CC4910CFD9DACE1283D3801DF25"),
        ("[9007199254740990]", 0xE574_4366, "0FEA3467D94AA6E4628EF0B248C1FD9B"),
        ("[9007199254740991]", 0x13F6_9B8A, "12C221C7032CED1F9E6693CE1428E6CF"),
        ("[9007199254740992]", 0xA30C_CE12, "15335910D01122E3D99DA5DE569B065D"),
    ] {
        let number = Epk(hash::number(f64::from(v1))).to_hex();
        assert!(hex(&definition(1), header).starts_with(&number), "{header} V1");
        assert_eq!(hex(&definition(2), header), v2, "{header} V2");
    }
}

#[test]
fn a_hierarchical_key_is_its_levels() {
    let [tenant, user, session] = [
        "3B67F777541374F849FC7793DE5DF915",
        "0B6EF6150874C10CFFB0A77F53F6B0A3",
        "3B1E49B1E77F500C7135E98044336BAA",
    ];
    let header = r#"["tenant","user","session"]"#;
    assert_eq!(hex(&levels(3), header), format!("{tenant}{user}{session}"));

    let prefix = PartitionKey::parse_header(r#"["tenant","user"]"#).unwrap();
    let (start, end) = prefix_range(&levels(3), &prefix);
    assert_eq!(start.to_hex(), format!("{tenant}{user}"));
    assert_eq!(end.to_hex(), format!("{tenant}{user}FF"));

    let all = prefix_range(&levels(3), &PartitionKey(vec![]));
    assert_eq!(all, (Epk::min(), Epk::max()));
}

#[test]
fn version_1_cuts_strings() {
    // 100 units of two bytes each: 200 bytes to hash, 101 in the EPK.
    let umlauts = hex(&definition(1), &format!("[\"{}\"]", "ü".repeat(150)));
    assert_eq!(umlauts, hex(&definition(1), &format!("[\"{}\"]", "ü".repeat(100))));
    assert_eq!(umlauts.split_once("08C4BD").unwrap().1.len(), 2 * 99);
    // 100 bytes: all of them and an end mark.
    let letters = hex(&definition(1), &format!("[\"{}\"]", "a".repeat(100)));
    assert!(letters.ends_with(&format!("08{}00", "62".repeat(100))));
    // Pairs count twice, and one is cut in half.
    let pairs = hex(&definition(1), &format!("[\"a{}\"]", "😀".repeat(60)));
    let replaced = hex(&definition(1), &format!("[\"a{}\u{fffd}\"]", "😀".repeat(49)));
    assert_eq!(pairs, replaced);
}

#[test]
fn boundaries_are_those_of_the_service() {
    let hexes = |definition: &PartitionKeyDefinition, n| -> Vec<String> {
        boundaries(definition, n).iter().map(Epk::to_hex).collect()
    };
    for definition in [&definition(2), &levels(2)] {
        assert_eq!(hexes(definition, 0), [""; 0]);
        assert_eq!(hexes(definition, 1), [""; 0]);
        assert_eq!(hexes(definition, 2), ["1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"]);
        assert_eq!(
            hexes(definition, 5),
            [
                "0CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC",
                "19999999999999999999999999999998",
                "26666666666666666666666666666664",
                "33333333333333333333333333333330",
            ]
        );
    }
    assert_eq!(hexes(&definition(1), 2), ["05C1DFFFFFFFFC"]);
    assert_eq!(
        hexes(&definition(1), 5),
        ["05C1C9CD673398", "05C1D9CD673398", "05C1E399CD6732", "05C1E9CD673398"]
    );
}

#[test]
fn how_many_ranges_a_throughput_has() {
    for (ru, ranges) in [
        (400, 1),
        (10_000, 1),
        (10_100, 2),
        (12_000, 2),
        (12_100, 3),
        (25_100, 5),
        (30_000, 5),
        (1_000_000, 167),
    ] {
        assert_eq!(range_count(ru), ranges, "{ru}");
    }
}

#[test]
fn the_middle_of_a_range_is_that_of_its_numbers() {
    for (version, whole, left, right) in [
        (
            2,
            "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
            "0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
            "2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
        ),
        (1, "05C1DFFFFFFFFC", "05C1CFFFFFFFF8", "05C1E7FFFFFFFE"),
    ] {
        let definition = definition(version);
        let (begin, middle) = (Epk::min(), middle(&definition, &Epk::min(), None).unwrap());
        assert_eq!(middle.to_hex(), whole);
        let half = |min: &Epk, max: Option<&Epk>| super::middle(&definition, min, max).unwrap();
        assert_eq!(half(&begin, Some(&middle)).to_hex(), left);
        assert_eq!(half(&middle, None).to_hex(), right);
        let quarter = width(&definition, &begin, Some(&half(&begin, Some(&middle))));
        assert_eq!(quarter, width(&definition, &begin, None) / 4);
    }
}

#[test]
fn a_range_can_be_halved_until_it_is_a_single_point() {
    for (definition, times) in [(definition(1), 31), (definition(2), 125), (levels(2), 125)] {
        let (mut min, mut max, mut count) = (Epk::min(), None::<Epk>, 0);
        while let Some(cut) = middle(&definition, &min, max.as_ref()) {
            assert!(min < cut && max.as_ref().is_none_or(|max| cut < *max));
            (min, max) = if count % 2 == 0 { (cut, max) } else { (min, Some(cut)) };
            count += 1;
        }
        assert!(count >= times, "{count}");
    }
}

#[test]
fn how_many_ranges_a_raised_throughput_has() {
    for (ru, ranges) in [(400, 1), (10_000, 1), (10_100, 2), (25_000, 3), (60_000, 6)] {
        assert_eq!(raised_range_count(ru), ranges, "{ru}");
    }
}

#[test]
fn hex_digits_are_read() {
    assert_eq!(parse_hex("").unwrap(), Epk::min());
    assert_eq!(parse_hex("FF").unwrap(), Epk::max());
    assert_eq!(parse_hex("05c1Df").unwrap(), Epk(vec![0x05, 0xC1, 0xDF]));
    for bad in ["F", "0G", "+1", " 1", "ü", &"0".repeat(1026)] {
        let error = parse_hex(bad).unwrap_err();
        assert_eq!(error.message, format!("The effective partition key '{bad}' is invalid."));
    }
}

/// Every key lies inside the space, and keys are spread over it.
#[test]
fn keys_are_spread_over_the_ranges() {
    for definition in [definition(1), definition(2), levels(1)] {
        let boundaries = boundaries(&definition, 5);
        let mut counts: HashMap<usize, u32> = HashMap::new();
        for number in 0..1000 {
            let key = PartitionKey(vec![Component::String(format!("key-{number}"))]);
            let epk = of(&definition, &key);
            assert!(epk > Epk::min() && epk < Epk::max());
            *counts.entry(boundaries.partition_point(|boundary| *boundary <= epk)).or_default() +=
                1;
        }
        assert_eq!(counts.len(), 5);
        assert!(counts.values().all(|count| (100..300).contains(count)), "{counts:?}");
    }
}

proptest! {
    #[test]
    fn numbers_keep_their_order(a in any::<f64>(), b in any::<f64>()) {
        prop_assume!(a.is_finite() && b.is_finite());
        prop_assert_eq!(a < b, hash::number(a) < hash::number(b));
    }

    #[test]
    fn hex_is_read_back(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let epk = Epk(bytes);
        prop_assert_eq!(parse_hex(&epk.to_hex()).unwrap(), epk);
    }
}
