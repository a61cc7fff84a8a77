//! Policies and their echo, what is refused, and what is indexed.

use super::*;

const REST: &str =
    r#","compositeIndexes":[],"spatialIndexes":[],"vectorIndexes":[],"fullTextIndexes":[]}"#;

fn parse(text: &str) -> Result<IndexingPolicy> {
    IndexingPolicy::parse(&serde_json::from_str(text).unwrap())
}

#[test]
fn paths_and_their_echo() {
    let default = r#"{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]"#;
    for (given, echo) in [
        ("{}", default),
        (r#"{"indexingMode":"consistent","automatic":true}"#, default),
        (r#"{"indexingMode":"consistent","automatic":false}"#, default),
        (r#"{"indexingMode":"Consistent","includedPaths":[],"excludedPaths":[]}"#, default),
        (r#"{"includedPaths":[{"path":"/*"}]}"#, default),
        (
            r#"{"includedPaths":[{"path":"/","indexes":[{"kind":"Hash","dataType":"Number","precision":2}]}]}"#,
            r#"{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*","indexes":[{"kind":"Hash","dataType":"Number","precision":2}]}],"excludedPaths":[{"path":"/\"_etag\"/?"}]"#,
        ),
        (
            r#"{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"systemMetadata\"/*"}]}"#,
            r#"{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"systemMetadata\"/*"},{"path":"/\"_etag\"/?"}]"#,
        ),
        (
            r#"{"indexingMode":"lazy","automatic":false,"includedPaths":[{"path":"/_etag/?"}],"excludedPaths":[{"path":"/*"}]}"#,
            r#"{"indexingMode":"lazy","automatic":true,"includedPaths":[{"path":"/_etag/?"}],"excludedPaths":[{"path":"/*"}]"#,
        ),
        (
            r#"{"indexingMode":"none","automatic":true,"includedPaths":[{"path":"/*"}]}"#,
            r#"{"indexingMode":"none","automatic":false,"includedPaths":[],"excludedPaths":[]"#,
        ),
    ] {
        let policy = parse(given).unwrap();
        assert_eq!(policy.to_json().to_string(), format!("{echo}{REST}"), "{given}");
        assert_eq!(IndexingPolicy::parse(&policy.to_json()).unwrap(), policy, "{given}");
    }
    assert_eq!(parse("{}").unwrap(), IndexingPolicy::default());
}

#[test]
fn special_indexes_are_echoed() {
    for member in [
        r#""compositeIndexes":[[{"path":"/a","order":"ascending"},{"path":"/b/\"c d\"","order":"descending"}]]"#,
        r#""spatialIndexes":[{"path":"/a/*","types":["Point","LineString","Polygon","MultiPolygon"]},{"path":"/b/?","types":["Polygon"],"boundingBox":{"xmin":0,"ymin":0,"xmax":9,"ymax":9}}]"#,
        r#""vectorIndexes":[{"path":"/v","type":"flat"},{"path":"/w","type":"quantizedFlat","quantizationByteSize":8},{"path":"/x","type":"diskANN","indexingSearchListSize":100,"vectorIndexShardKey":["/city"]}]"#,
        r#""fullTextIndexes":[{"path":"/a"},{"path":"/b/c"}]"#,
    ] {
        let policy = parse(&format!("{{{member}}}")).unwrap();
        assert!(policy.to_json().to_string().contains(member), "{}", policy.to_json());
        assert_eq!(IndexingPolicy::parse(&policy.to_json()).unwrap(), policy);
    }
    let filled = parse(
        r#"{"spatialIndexes":[{"path":"/a/*"}],"compositeIndexes":[[{"path":"/a/?"},{"path":"/b"}]]}"#,
    );
    let filled = filled.unwrap();
    assert_eq!(filled.spatial[0].types.len(), 4);
    assert_eq!(filled.composites[0][0].order, Order::Ascending);
    assert_eq!(filled.composites[0][0].path.segments(), ["a"]);
}

/// The excluded etag comes on top, and what was stored is read again.
#[test]
fn the_largest_policy_is_read_back() {
    let paths: Vec<String> = (0..1499).map(|n| format!(r#"{{"path":"/p{n}/?"}}"#)).collect();
    let text = format!(r#"{{"includedPaths":[{{"path":"/*"}},{}]}}"#, paths.join(","));
    let policy = IndexingPolicy::parse(&serde_json::from_str(&text).unwrap()).unwrap();
    assert_eq!(IndexingPolicy::parse(&policy.to_json()).unwrap(), policy);
}

#[test]
fn policies_that_are_refused() {
    let paths: Vec<String> = (0..1500).map(|n| format!(r#"{{"path":"/p{n}/?"}}"#)).collect();
    let many = format!(r#"{{"includedPaths":[{{"path":"/*"}},{}]}}"#, paths.join(","));
    let nine = [r#"{"path":"/a"}"#; 9].join(",");
    let nine = format!(r#"{{"compositeIndexes":[[{nine}]]}}"#);
    let pair = r#"[{"path":"/a"},{"path":"/b"}]"#;
    let composites = format!(r#"{{"compositeIndexes":[{}]}}"#, [pair; 101].join(","));
    for (given, reason) in [
        ("[]", "'[]' is not an object"),
        (r#"{"indexingMode":"eager"}"#, "the mode 'eager' is not 'consistent', 'lazy' or 'none'"),
        (r#"{"indexingMode":1}"#, "the mode '1' is not a string"),
        (r#"{"automatic":"yes"}"#, "automatic '\"yes\"' is not a boolean"),
        (r#"{"includedPaths":{}}"#, "includedPaths '{}' is not a list"),
        (r#"{"includedPaths":["/*"]}"#, "'\"/*\"' has no path"),
        (r#"{"includedPaths":[{"path":"/*"},{"path":"/*"}]}"#, "the path '/*' is there twice"),
        (
            r#"{"includedPaths":[{"path":"/*"},{"path":"/a/?"}],"excludedPaths":[{"path":"/\"a\"/?"}]}"#,
            "the path '/\"a\"/?' is there twice",
        ),
        (&many, "there are 1501 paths; 1500 are allowed"),
        (&nine, "a composite index has 9 paths; 2 to 8 are allowed"),
        (&composites, "there are 101 composite indexes; 100 are allowed"),
        (
            r#"{"compositeIndexes":[[{"path":"/a"}]]}"#,
            "a composite index has 1 paths; 2 to 8 are allowed",
        ),
        (
            r#"{"compositeIndexes":[{"path":"/a"}]}"#,
            "the composite index '{\"path\":\"/a\"}' is not a list",
        ),
        (
            r#"{"compositeIndexes":[[{"path":"/a"},{"path":"/a"}]]}"#,
            "the path '/a' is twice in a composite index",
        ),
        (
            r#"{"compositeIndexes":[[{"path":"/a"},{"path":"/b","order":"up"}]]}"#,
            "the order \"up\" is not 'ascending' or 'descending'",
        ),
        (
            r#"{"spatialIndexes":[{"path":"/a/*","types":["Circle"]}]}"#,
            "\"Circle\" is not a spatial type",
        ),
        (
            r#"{"spatialIndexes":[{"path":"/a/*","types":"Point"}]}"#,
            "types '\"Point\"' is not a list",
        ),
        (
            r#"{"spatialIndexes":[{"path":"/a/*"},{"path":"/a/*"}]}"#,
            "the spatial index path '/a/*' is there twice",
        ),
        (r#"{"fullTextIndexes":[{"not_path":"a"}]}"#, "'{\"not_path\":\"a\"}' has no path"),
        (
            r#"{"fullTextIndexes":[{"path":"/a"},{"path":"/a"}]}"#,
            "the full-text index path '/a' is there twice",
        ),
    ] {
        let error = parse(given).unwrap_err();
        assert_eq!(error.message, format!("The indexing policy is invalid: {reason}."));
    }
}

#[test]
fn sentences_of_the_service() {
    for (given, message) in [
        (
            r#"{"includedPaths":[{"path":"/a/?"}]}"#,
            "The special mandatory indexing path \"/*\" is not provided in any of the path type sets. Please provide this path in one of the sets.",
        ),
        (
            r#"{"includedPaths":[{"path":"/expiration"}]}"#,
            "The indexing path '/expiration' could not be accepted, failed near position '11'. Please ensure that the path is a valid path. Common errors include invalid characters or absence of quotes around labels.",
        ),
        (
            r#"{"vectorIndexes":[{"path":"/v","type":"notFlat"}]}"#,
            "The Vector Indexing Policy's Index Type::notFlat is invalid.",
        ),
        (
            r#"{"vectorIndexes":[{"path":"/v","type":"diskANN","vectorIndexShardKey":["country"]}]}"#,
            "The Vector Indexing Policy has an invalid Shard Path: country.",
        ),
        (
            r#"{"vectorIndexes":[{"path":"/v","type":"diskANN","vectorIndexShardKey":["/a","/b","/c"]}]}"#,
            "The number of shard paths defined in the Vector Indexing Policy: 3 exceeds the maximum: 1.",
        ),
        (
            r#"{"vectorIndexes":[{"path":"/v","type":"diskANN","vectorIndexShardKey":"/a"}]}"#,
            "One of the specified inputs is invalid",
        ),
    ] {
        assert_eq!(parse(given).unwrap_err().message, message);
    }
}

#[test]
fn index_paths_that_are_read() {
    let name = |name: &str| Segment::Name(name.to_owned());
    for (text, segments, end) in [
        ("/*", vec![], End::Subtree),
        ("/", vec![], End::Subtree),
        ("/?", vec![], End::Scalar),
        ("/a/?", vec![name("a")], End::Scalar),
        ("/a/b/*", vec![name("a"), name("b")], End::Subtree),
        ("/a/[]/b/?", vec![name("a"), Segment::Items, name("b")], End::Scalar),
        ("/\"a/b-c\"/*", vec![name("a/b-c")], End::Subtree),
        ("/\"*\"/?", vec![name("*")], End::Scalar),
        ("/ü_1/?", vec![name("ü_1")], End::Scalar),
        (
            "/events/[]/{name, a/\"b c\"}/?",
            vec![
                name("events"),
                Segment::Items,
                Segment::Tuple(vec![vec!["name".into()], vec!["a".into(), "b c".into()]]),
            ],
            End::Scalar,
        ),
    ] {
        let path = IndexPath::parse(text).unwrap();
        assert_eq!((path.segments, path.end), (segments, end), "{text}");
    }
}

#[test]
fn index_paths_that_are_refused() {
    for (text, position) in [
        ("", 0),
        ("a/?", 0),
        ("/a", 2),
        ("/a/", 3),
        ("//?", 1),
        ("/a-b/?", 2),
        ("/a b/?", 2),
        ("/*/a/?", 1),
        ("/a/*/b", 3),
        ("/a/?/b", 3),
        ("/a?", 2),
        ("/\"a/?", 1),
        ("/\"\"/?", 1),
        ("/\"a\"b/?", 4),
        ("/[]a/?", 3),
        ("/{a,}/?", 4),
        ("/{a b}/?", 4),
        ("/{a/?", 4),
    ] {
        let message = IndexPath::parse(text).unwrap_err().message;
        assert!(
            message.contains(&format!("failed near position '{position}'")),
            "{text}: {message}"
        );
    }
}

#[test]
fn the_longer_path_decides() {
    let policy = parse(
        r#"{"includedPaths":[{"path":"/*"},{"path":"/a/b/*"},{"path":"/c/?"},{"path":"/d/[]/e/?"}],
            "excludedPaths":[{"path":"/a/*"},{"path":"/c/*"},{"path":"/d/*"},{"path":"/a/b/c/?"}]}"#,
    )
    .unwrap();
    for (path, expected) in [
        ("x", true),
        ("x.y", true),
        ("a", false),
        ("a.x", false),
        ("a.b", true),
        ("a.b.x.y", true),
        ("a.b.c", false),
        ("a.b.c.d", true),
        ("c", true),
        ("c.x", false),
        ("d.[].e", true),
        ("d.[].f", false),
        ("d.e", false),
        ("_etag", false),
    ] {
        let steps: Vec<Step<'_>> = path
            .split('.')
            .map(|step| if step == "[]" { Step::Item } else { Step::Name(step) })
            .collect();
        assert_eq!(policy.is_indexed(&steps), expected, "{path}");
    }
    assert!(!parse(r#"{"indexingMode":"none"}"#).unwrap().is_indexed(&[Step::Name("a")]));
}

#[test]
fn a_path_is_written_as_it_is_read() {
    for (steps, expected) in [
        (&[Step::Name("a"), Step::Name("b_1")][..], "/a/b_1"),
        (&[Step::Name("a"), Step::Item, Step::Name("b c")], r#"/a/[]/"b c""#),
        (&[Step::Name("ü")], "/ü"),
        (&[Step::Name(r#"a"\b/c"#)], r#"/"a\"\\b/c""#),
    ] {
        let text = path_text(steps);
        assert_eq!(text, expected);
        assert!(IndexPath::parse(&format!("{text}/?")).unwrap().covers(steps), "{text}");
    }
}
