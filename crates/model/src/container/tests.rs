//! Definitions and their echo, what is refused, and what may change.

use super::*;
use crate::error::ErrorKind;
use crate::partition_key::Version;

fn made(text: &str) -> ContainerDefinition {
    parse(text.as_bytes(), false).unwrap()
}

fn refused(text: &str) -> Error {
    parse(text.as_bytes(), false).unwrap_err()
}

fn echo(definition: &ContainerDefinition) -> String {
    Value::Object(definition.to_json()).to_string()
}

const POLICY: &str = r#""indexingPolicy":{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}],"compositeIndexes":[],"spatialIndexes":[],"vectorIndexes":[],"fullTextIndexes":[]}"#;
const CONFLICT: &str = r#""conflictResolutionPolicy":{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","conflictResolutionProcedure":""}"#;

#[test]
fn defaults_are_filled_in() {
    let key = r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#;
    assert_eq!(
        echo(&made(&format!(r#"{{"id":"c",{key}}}"#))),
        format!(
            r#"{{"id":"c",{key},{POLICY},{CONFLICT},"geospatialConfig":{{"type":"Geography"}}}}"#
        )
    );
    let system =
        r#""partitionKey":{"paths":["/_partitionKey"],"kind":"Hash","version":2,"systemKey":true}"#;
    assert_eq!(
        echo(&made(
            r#"{"id":"c","partitionKey":null,"defaultTtl":null,"uniqueKeyPolicy":{"uniqueKeys":[]}}"#
        )),
        format!(
            r#"{{"id":"c",{system},{POLICY},{CONFLICT},"geospatialConfig":{{"type":"Geography"}}}}"#
        )
    );
}

#[test]
fn everything_is_echoed_and_read_back() {
    let full = format!(
        r#"{{"id":"c","partitionKey":{{"paths":["/a","/b"],"kind":"MultiHash","version":2}},"indexingPolicy":{{"indexingMode":"consistent","automatic":true,"includedPaths":[{{"path":"/*"}}],"excludedPaths":[{{"path":"/\"_etag\"/?"}}],"compositeIndexes":[],"spatialIndexes":[],"vectorIndexes":[{{"path":"/v","type":"flat"}}],"fullTextIndexes":[{{"path":"/t"}}]}},"uniqueKeyPolicy":{{"uniqueKeys":[{{"paths":["/a","/b"]}},{{"paths":["/c"]}}]}},{CONFLICT},"geospatialConfig":{{"type":"Geometry"}},"defaultTtl":-1,"ttlPropertyPath":"/born/at","analyticalStorageTtl":1000,"vectorEmbeddingPolicy":{{"vectorEmbeddings":[{{"path":"/v","dataType":"float32","dimensions":2,"distanceFunction":"cosine"}}]}},"fullTextPolicy":{{"defaultLanguage":"en-US","fullTextPaths":[{{"path":"/t","language":"en-US"}}]}},"clientEncryptionPolicy":{{}},"changeFeedPolicy":{{"retentionDuration":10}},"computedProperties":[{{"name":"z","query":"SELECT VALUE LOWER(c.z) FROM c"}},{{"name":"low","query":"?"}}]}}"#
    );
    let definition = made(&full);
    assert_eq!(echo(&definition), full);
    let stored = serde_json::to_string(&definition).unwrap();
    assert_eq!(serde_json::from_str::<ContainerDefinition>(&stored).unwrap(), definition);
}

#[test]
fn system_properties_and_strangers_are_read_past() {
    let definition = made(
        r#"{"id":"c","_rid":"x","_self":"y","_etag":"z","_ts":1,"_docs":"docs/","_sprocs":"sprocs/",
            "_triggers":"triggers/","_udfs":"udfs/","_conflicts":"conflicts/","statistics":[],
            "computedProperties":[],"ttlPropertyPath":null}"#,
    );
    assert_eq!(definition, made(r#"{"id":"c"}"#));
}

/// Rows 1 to 19 of the acceptance cases.
#[test]
fn default_times_to_live() {
    let with = |ttl: &str| format!(r#"{{"id":"c","defaultTtl":{ttl}}}"#);
    for (ttl, expected) in
        [("-1", -1), ("5", 5), ("2147483647", 2_147_483_647), ("7776000", 7_776_000)]
    {
        assert_eq!(made(&with(ttl)).to_json()["defaultTtl"], json!(expected));
    }
    for ttl in ["2147483648", "0", "-10", "-2", "\"5\"", "1.5", "true"] {
        let message = refused(&with(ttl)).message;
        assert!(
            message.starts_with(&format!("The input defaultTtl '{ttl}' is invalid.")),
            "{message}"
        );
    }
    assert!(!made(&with("null")).to_json().contains_key("defaultTtl"));
    assert!(parse(with("null").as_bytes(), true).is_err());
}

#[test]
fn a_time_to_live_needs_an_index() {
    let sentence =
        "Indexing mode value cannot be 'none' when 'defaultTtl' is specified in the collection";
    let none = r#""indexingPolicy":{"indexingMode":"none","automatic":false}"#;
    for ttl in ["5", "-1"] {
        assert_eq!(
            refused(&format!(r#"{{"id":"c","defaultTtl":{ttl},{none}}}"#)).message,
            sentence
        );
    }
    let without = made(&format!(r#"{{"id":"c",{none}}}"#));
    let with = made(r#"{"id":"c","defaultTtl":5}"#);
    let on = format!(r#"{{"id":"c","defaultTtl":5,{none}}}"#);
    assert_eq!(parse_replacement(&without, on.as_bytes(), false).unwrap_err().message, sentence);
    assert_eq!(parse_replacement(&with, on.as_bytes(), false).unwrap_err().message, sentence);
    let off = format!(r#"{{"id":"c",{none}}}"#);
    assert!(parse_replacement(&with, off.as_bytes(), false).is_ok());

    for policy in [r#"{"indexingMode":"lazy"}"#, r#"{"excludedPaths":[{"path":"/*"}]}"#] {
        made(&format!(r#"{{"id":"c","defaultTtl":5,"indexingPolicy":{policy}}}"#));
    }
}

#[test]
fn analytical_times_to_live() {
    let with = |ttl: &str| format!(r#"{{"id":"c","analyticalStorageTtl":{ttl}}}"#);
    for (ttl, expected) in [
        ("-1", Some(-1)),
        ("0", Some(0)),
        ("null", None),
        ("1", Some(1)),
        ("2147483647", Some(2_147_483_647)),
    ] {
        assert_eq!(made(&with(ttl)).analytical_ttl, expected, "{ttl}");
    }
    for ttl in ["-2", "-10", "2147483648", "1.5", "\"1\"", "true"] {
        assert!(refused(&with(ttl)).message.contains(&format!("analyticalStorageTtl '{ttl}'")));
    }
}

#[test]
fn bodies_that_are_refused() {
    for body in [
        "",
        "[]",
        "{}",
        r#"{"id":1}"#,
        r#"{"id":""}"#,
        r#"{"id":"a/b"}"#,
        r#"{"id":"c "}"#,
        r#"{"id":"c","partitionKey":"/pk"}"#,
        r#"{"id":"c","partitionKey":{"paths":["pk"]}}"#,
        r#"{"id":"c","indexingPolicy":[]}"#,
        r#"{"id":"c","uniqueKeyPolicy":[]}"#,
        r#"{"id":"c","conflictResolutionPolicy":{}}"#,
        r#"{"id":"c","conflictResolutionPolicy":{"mode":"FirstWriterWins"}}"#,
        r#"{"id":"c","conflictResolutionPolicy":{"mode":"LastWriterWins","conflictResolutionPath":"x"}}"#,
        r#"{"id":"c","geospatialConfig":{"type":"Flat"}}"#,
        r#"{"id":"c","geospatialConfig":1}"#,
        r#"{"id":"c","clientEncryptionPolicy":[]}"#,
        r#"{"id":"c","changeFeedPolicy":1}"#,
        r#"{"id":"c","ttlPropertyPath":"/born"}"#,
        r#"{"id":"c","defaultTtl":5,"ttlPropertyPath":"born"}"#,
        r#"{"id":"c","defaultTtl":5,"ttlPropertyPath":1}"#,
        r#"{"id":"c","vectorEmbeddingPolicy":1}"#,
        r#"{"id":"c","fullTextPolicy":[]}"#,
    ] {
        assert_eq!(refused(body).kind, ErrorKind::BadRequest, "{body}");
    }
}

#[test]
fn features_that_come_later_say_so() {
    for (member, feature) in [
        (r#""conflictResolutionPolicy":{"mode":"Custom"}"#, "The conflict resolution mode Custom"),
        (r#""materializedViewDefinition":{"sourceCollectionId":"a"}"#, "A materialized view"),
    ] {
        let error = refused(&format!(r#"{{"id":"c",{member}}}"#));
        assert_eq!(error, Error::not_yet(feature));
    }
}

#[test]
fn a_change_feed_policy_says_for_how_many_minutes() {
    let with = |policy: &str| format!(r#"{{"id":"c","changeFeedPolicy":{policy}}}"#);
    assert_eq!(made(r#"{"id":"c"}"#).feed_minutes(), None);
    for (policy, expected) in [
        ("null", None),
        ("{}", Some(0)),
        (r#"{"retentionDuration":0}"#, Some(0)),
        (r#"{"retentionDuration":5}"#, Some(5)),
        (r#"{"retentionDuration":2147483647}"#, Some(2_147_483_647)),
    ] {
        let definition = made(&with(policy));
        assert_eq!(definition.feed_minutes(), expected, "{policy}");
    }
    for duration in ["-1", "1.5", "\"5\"", "null", "2147483648"] {
        let error = refused(&with(&format!(r#"{{"retentionDuration":{duration}}}"#)));
        assert!(error.message.contains("retentionDuration"), "{error}");
    }
    // What was stored before this was checked stays, and counts as none.
    let old =
        r#"{"id":"c","partitionKey":{"paths":["/a"]},"changeFeedPolicy":{"retentionDuration":-1}}"#;
    let old: ContainerDefinition = serde_json::from_str(old).unwrap();
    assert_eq!(old.feed_minutes(), Some(0));
    assert_eq!(parse_replacement(&old, echo(&old).as_bytes(), false).unwrap(), old);
}

#[test]
fn unique_keys_that_are_refused() {
    let paths =
        |count: usize| (0..count).map(|n| format!("\"/p{n}\"")).collect::<Vec<_>>().join(",");
    let many: Vec<String> = (0..11).map(|n| format!(r#"{{"paths":["/p{n}"]}}"#)).collect();
    for (keys, reason) in [
        ("1".to_owned(), "uniqueKeys '1' is not a list"),
        ("[{}]".to_owned(), "'{}' has no list of paths"),
        (r#"[{"paths":[]}]"#.to_owned(), "a unique key has 0 paths; 1 to 16 are allowed"),
        (
            format!(r#"[{{"paths":[{}]}}]"#, paths(17)),
            "a unique key has 17 paths; 1 to 16 are allowed",
        ),
        (format!("[{}]", many.join(",")), "there are 11 unique keys; 10 are allowed"),
        (r#"[{"paths":[1]}]"#.to_owned(), "the path 1 is not a string"),
        (r#"[{"paths":["/a","/\"a\""]}]"#.to_owned(), "the path '/\"a\"' is twice in a unique key"),
        (
            r#"[{"paths":["/a","/b"]},{"paths":["/b","/a"]}]"#.to_owned(),
            "the unique key '{\"paths\":[\"/b\",\"/a\"]}' is there twice",
        ),
        (r#"[{"paths":["/_ts"]}]"#.to_owned(), "the path '/_ts' is a system property"),
    ] {
        let error = refused(&format!(r#"{{"id":"c","uniqueKeyPolicy":{{"uniqueKeys":{keys}}}}}"#));
        assert_eq!(error.message, format!("The unique key policy is invalid: {reason}."));
    }
    made(&format!(
        r#"{{"id":"c","uniqueKeyPolicy":{{"uniqueKeys":[{{"paths":[{}]}}]}}}}"#,
        paths(16)
    ));
    let error = refused(r#"{"id":"c","uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a/*"]}]}}"#);
    assert!(error.message.starts_with("Error parsing the unique key path '/a/*'"));
}

#[test]
fn vector_policies_are_checked() {
    let embedding = |member: &str| {
        format!(
            r#"{{"path":"/v","dataType":"float32","dimensions":256,"distanceFunction":"euclidean",{member}}}"#
        )
    };
    let body = |embedding: &str, index: &str| {
        format!(
            r#"{{"id":"c","vectorEmbeddingPolicy":{{"vectorEmbeddings":[{embedding}]}},"indexingPolicy":{{"vectorIndexes":[{index}]}}}}"#
        )
    };
    for (embedding, index, message) in [
        (
            embedding(r#""dataType":"float33""#),
            "",
            "The Vector Embedding Policy has an invalid DataType:float33.",
        ),
        (
            embedding(r#""dimensions":8000"#),
            "",
            "The Vector Embedding Policy has Dimensions:8000 which is more than the maximum supported value 4096.",
        ),
        (
            embedding(r#""dimensions":-1"#),
            "",
            "The Vector Embedding Policy has Dimensions:-1; a vector has 1 or more.",
        ),
        (
            embedding(r#""distanceFunction":"handMeasured""#),
            "",
            "The Vector Embedding Policy has an invalid DistanceFunction:handMeasured.",
        ),
        (
            embedding(r#""path":"v""#),
            "",
            "The Vector Embedding Policy has an invalid Path:v. Specify the correct path for vector properties of your documents.",
        ),
        (
            String::new(),
            r#"{"path":"/v","type":"flat"}"#,
            "The Vector Indexing Policy's path::/v not matching in Embedding's path.",
        ),
        (
            embedding(r#""a":1"#),
            r#"{"path":"/v","type":"quantizedFlat","quantizationByteSize":0}"#,
            "The Vector Indexing Policy parameter QuantizationByteSize value :: 0 is out of range. The allowed range is between 1 and 256.",
        ),
        (
            embedding(r#""dimensions":550"#),
            r#"{"path":"/v","type":"quantizedFlat","quantizationByteSize":513}"#,
            "The Vector Indexing Policy parameter QuantizationByteSize value :: 513 is out of range. The allowed range is between 1 and 512.",
        ),
        (
            embedding(r#""a":1"#),
            r#"{"path":"/v","type":"diskANN","indexingSearchListSize":5}"#,
            "The Vector Indexing Policy parameter IndexingSearchListSize value :: 5 is out of range. The allowed range is between 25 and 500.",
        ),
        (
            embedding(r#""dimensions":506"#),
            r#"{"path":"/v","type":"flat"}"#,
            "The vector index of type flat under '/v' has 506 dimensions; at most 505 are allowed.",
        ),
    ] {
        assert_eq!(refused(&body(&embedding, index)).message, message);
    }
}

#[test]
fn full_text_policies_are_checked() {
    for (members, message) in [
        (
            r#""fullTextPolicy":{"fullTextPaths":[{"path":"abstract"}]}"#,
            "The Full-Text Policy contains an invalid Path: abstract.",
        ),
        (
            r#""fullTextPolicy":{"defaultLanguage":"spa-SPA"}"#,
            "The Full Text Policy contains an unsupported language spa-SPA.",
        ),
        (
            r#""indexingPolicy":{"fullTextIndexes":[{"path":"/a"}]}"#,
            "The indexing policy is invalid: the full-text index path '/a' is not in the full-text policy.",
        ),
    ] {
        let error = refused(&format!(r#"{{"id":"c",{members}}}"#));
        assert!(error.message.starts_with(message), "{error}");
    }
}

#[test]
fn what_may_change_and_what_may_not() {
    let old = made(
        r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},
            "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a","/b"]},{"paths":["/c"]}]},
            "conflictResolutionPolicy":{"mode":"LastWriterWins","conflictResolutionPath":"/n"},
            "vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dataType":"float32","dimensions":8,"distanceFunction":"cosine"}]},
            "indexingPolicy":{"vectorIndexes":[{"path":"/v","type":"flat"}]},"defaultTtl":5}"#,
    );
    let replace = |body: &str| parse_replacement(&old, body.as_bytes(), false);

    // What is left out and cannot change stays; the rest goes.
    let short = replace(r#"{"id":"c"}"#).unwrap();
    assert_eq!(short.partition_key, old.partition_key);
    assert_eq!(short.unique_keys, old.unique_keys);
    assert_eq!(short.conflict_path, "/n");
    assert_eq!(short.ttl, ContainerTtl::Off);
    assert_eq!(short.partition_key.version, Version::V2);
    assert_eq!(replace(&echo(&old)).unwrap(), old);

    for good in [
        r#"{"id":"c","partitionKey":{"paths":["/\"pk\""],"version":2},"defaultTtl":-1}"#,
        r#"{"id":"c","uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/c"]},{"paths":["/b","/a"]}]}}"#,
        r#"{"id":"c","geospatialConfig":{"type":"Geometry"},"changeFeedPolicy":{"retentionDuration":5}}"#,
    ] {
        assert!(replace(good).is_ok(), "{good}");
    }
    for (bad, what) in [
        (r#"{"id":"d"}"#, "id"),
        (r#"{"id":"c","partitionKey":{"paths":["/other"],"version":2}}"#, "partition key"),
        (r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":1}}"#, "partition key"),
        (r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"MultiHash"}}"#, "partition key"),
        (r#"{"id":"c","uniqueKeyPolicy":{"uniqueKeys":[]}}"#, "unique key policy"),
        (
            r#"{"id":"c","uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a","/b"]},{"paths":["/d"]}]}}"#,
            "unique key policy",
        ),
        (
            r#"{"id":"c","conflictResolutionPolicy":{"mode":"LastWriterWins"}}"#,
            "conflict resolution policy",
        ),
    ] {
        let message = format!("The {what} of container 'c' cannot be changed.");
        assert_eq!(replace(bad).unwrap_err().message, message, "{bad}");
    }
    for (bad, what) in [
        (
            r#"{"id":"c","vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dataType":"float32","dimensions":9,"distanceFunction":"cosine"}]}}"#,
            "embedding",
        ),
        (
            r#"{"id":"c","vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dataType":"float32","dimensions":8,"distanceFunction":"cosine"}]},"indexingPolicy":{"vectorIndexes":[{"path":"/v","type":"quantizedFlat"}]}}"#,
            "vector indexing",
        ),
    ] {
        let message =
            format!("Paths in existing {what} policy cannot be modified in Collection Replace");
        assert!(replace(bad).unwrap_err().message.starts_with(&message), "{bad}");
    }
}

#[test]
fn computed_properties_that_are_refused() {
    let named = |name: &str| format!(r#"[{{"name":"{name}","query":"q"}}]"#);
    let many: Vec<String> = (0..21).map(|n| format!(r#"{{"name":"p{n}","query":"q"}}"#)).collect();
    let with = |properties: &str, more: &str| {
        format!(
            r#"{{"id":"c","partitionKey":{{"paths":["/pk"]}},"computedProperties":{properties}{more}}}"#
        )
    };
    let index = |index: &str| {
        let embeddings = r#"{"vectorEmbeddings":[{"path":"/a","dataType":"int8","dimensions":2,"distanceFunction":"cosine"}]}"#;
        format!(
            r#","indexingPolicy":{{{index}}},"vectorEmbeddingPolicy":{embeddings},"fullTextPolicy":{{"fullTextPaths":[{{"path":"/a"}}]}}"#
        )
    };
    let place = "it can be in included, excluded and composite paths, and in no other index";
    let (ours, its) = ("One of the specified inputs is invalid: ", "Message: {\"Errors\":[\"");
    let system = |name: &str| {
        format!(
            "The system property name '{name}' cannot be used as a computed property name.\"]}}"
        )
    };
    for (properties, more, start, reason) in [
        ("1", String::new(), ours, "is not a list: 1."),
        ("[1]", String::new(), its, "One of the specified inputs is invalid\"]}"),
        (r#"[{"name":"a"}]"#, String::new(), its, "One of the specified inputs is invalid\"]}"),
        (r#"[{"query":"q"}]"#, String::new(), its, "One of the specified inputs is invalid\"]}"),
        (
            r#"[{"name":"a","query":""}]"#,
            String::new(),
            its,
            "Computed property 'query' is either empty or unspecified.\"]}",
        ),
        (
            &format!("[{}]", many.join(",")),
            String::new(),
            ours,
            "has 21 computed properties, and 20 are",
        ),
        (
            r#"[{"name":"a","query":"q"},{"name":"a","query":"r"}]"#,
            String::new(),
            its,
            "Computed property name 'a' cannot be used in multiple definitions.\"]}",
        ),
        (
            &named(""),
            String::new(),
            its,
            "Computed property 'name' is either empty or unspecified.\"]}",
        ),
        (&named(&"n".repeat(256)), String::new(), ours, "its name has 255 bytes at most"),
        (&named("id"), String::new(), its, &system("id")),
        (&named("_ts"), String::new(), its, &system("_ts")),
        (&named("_self"), String::new(), its, &system("_self")),
        (&named("pk"), String::new(), ours, "the partition key starts with its name"),
        (
            &format!(r#"[{{"name":"a","query":"{}"}}]"#, "q".repeat(4097)),
            String::new(),
            ours,
            "its query has 4096 bytes at most",
        ),
        (
            r#"[{"name":"b","query":"q"},{"name":"a","query":"q"}]"#,
            index(r#""spatialIndexes":[{"path":"/a/*","types":["Point"]}]"#),
            its,
            "Computed property 'a' at index (1) has a spatial index. Remove the spatial index on \
             this path.\"]}",
        ),
        (&named("a"), index(r#""vectorIndexes":[{"path":"/a","type":"flat"}]"#), ours, place),
        (&named("a"), index(r#""fullTextIndexes":[{"path":"/a"}]"#), ours, place),
    ] {
        let error = refused(&with(properties, &more));
        assert_eq!(error.kind, ErrorKind::BadRequest);
        assert!(error.message.starts_with(start), "{}: {start}", error.message);
        assert!(error.message.contains(reason), "{}: {reason}", error.message);
    }
    made(&with(&named(&"n".repeat(255)), ""));
    made(&with(&format!("[{}]", many[..20].join(",")), ""));
    made(&with(
        &named("a"),
        r#","indexingPolicy":{"compositeIndexes":[[{"path":"/a"},{"path":"/b"}]]}"#,
    ));
}

#[test]
fn computed_properties_are_replaced_whole() {
    let with = |list: &str| format!(r#"{{"id":"c","computedProperties":{list}}}"#);
    let old = made(&with(r#"[{"name":"a","query":"q"},{"name":"b","query":"q"}]"#));
    for (list, count) in [(r#"[{"name":"b","query":"r"}]"#, 1), ("[]", 0), ("null", 0)] {
        let new = parse_replacement(&old, with(list).as_bytes(), false).unwrap();
        assert_eq!(new.computed.len(), count, "{list}");
    }
}

#[test]
fn a_container_with_a_key_that_is_no_longer_taken_stays_and_changes() {
    let stored = r#"{"id":"c","partitionKey":{"paths":["/a-b"],"kind":"Hash","version":2}}"#;
    assert!(parse(stored.as_bytes(), false).is_err());
    let old: ContainerDefinition = serde_json::from_str(stored).unwrap();
    let new = r#"{"id":"c","partitionKey":{"paths":["/a-b"],"version":2},"defaultTtl":5}"#;
    let new = parse_replacement(&old, new.as_bytes(), false).unwrap();
    assert_eq!(new.partition_key, old.partition_key);
}

#[test]
fn a_plane_needs_its_bounds_and_a_globe_has_none() {
    let with = |kind: &str, more: &str| {
        format!(
            r#"{{"id":"c","geospatialConfig":{{"type":"{kind}"}},"indexingPolicy":{{"spatialIndexes":[{{"path":"/at/?"{more}}}]}}}}"#
        )
    };
    let bounds = r#","boundingBox":{"xmin":0,"ymin":0,"xmax":9,"ymax":9}"#;
    made(&with("Geometry", bounds));
    made(&with("Geography", ""));
    for (kind, more, sentence) in [
        (
            "Geometry",
            "",
            "Required parameter 'boundingBox' for 'Geometry' collection is missing in spatial path \
             '/at/?'",
        ),
        (
            "Geography",
            bounds,
            "Incorrect parameter 'boundingBox' specified for 'Geography' collection in spatial \
             path '/at/?'",
        ),
        (
            "Geography",
            r#","types":[]"#,
            "The spatial data types array cannot be empty. Assign at least one spatial type for \
             the 'types' array for the path '/at/?'.",
        ),
    ] {
        let body = with(kind, more);
        assert_eq!(refused(&body), Error::in_its_words(sentence));
        // What was stored before this was checked is read, and may stay.
        let old: ContainerDefinition = serde_json::from_str(&body).unwrap();
        parse_replacement(&old, body.as_bytes(), false).unwrap();
        let other = made(r#"{"id":"c"}"#);
        let error = parse_replacement(&other, body.as_bytes(), false).unwrap_err();
        assert_eq!(error, Error::in_its_words(sentence));
    }
}
