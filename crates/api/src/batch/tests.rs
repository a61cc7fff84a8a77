//! Whatever is sent as a batch is refused or read, in either form.
//!
//! `PROPTEST_CASES=100000 cargo test --release -p dayfly-api batch` tries more.

use dayfly_model::json;
use proptest::prelude::*;

use super::*;
use crate::hybrid_row::RowValue;

fn item(text: &Bytes) -> Result<ObjectText> {
    json::take(text, &["_ts"])
}

fn row<'a>(number: i32) -> Row<'a> {
    Row::new(&OPERATION)
        .with("operationType", Some(RowValue::Int(number)))
        .with("resourceType", Some(RowValue::Int(DOCUMENT)))
}

/// One operation of each kind but Patch, with every field.
fn rows() -> Vec<Row<'static>> {
    let text = |text| Some(RowValue::Text(text));
    let body = |text: &'static str| Some(RowValue::Binary(text.as_bytes()));
    vec![
        row(0)
            .with("resourceBody", body(r#"{"id":"a"}"#))
            .with("indexingDirective", text("Exclude"))
            .with("timeToLiveInSeconds", Some(RowValue::Int(5))),
        row(20)
            .with("resourceBody", body(r#" {"ttl": 3, "_ts": 1 } "#))
            .with("indexingDirective", text("Include"))
            .with("timeToLiveInSeconds", Some(RowValue::Int(5))),
        row(5)
            .with("partitionKey", text(r#"["a",1,{}]"#))
            .with("effectivePartitionKey", Some(RowValue::Binary(&[1])))
            .with("id", text("a"))
            .with("binaryId", Some(RowValue::Binary(&[255])))
            .with("resourceBody", body("{}"))
            .with("ifMatch", text("\"e\""))
            .with("timeToLiveInSeconds", Some(RowValue::Int(-1)))
            .with("minimalReturnPreference", Some(RowValue::Bool(true))),
        row(4).with("id", text("a")).with("ifNoneMatch", text("*")),
        row(2).with("id", text("a")).with("minimalReturnPreference", Some(RowValue::Bool(true))),
    ]
}

/// The same in JSON, as far as it can be said there.
const TEXT: &str = r#"[{"operationType":"Create","resourceBody":{"id":"a"}},
{"operationType":"Upsert","resourceBody":{"ttl":3}},
{"operationType":"Replace","partitionKey":"[\"a\",1,{}]","id":"a","resourceBody":{},
"ifMatch":"\"e\"","minimalReturnPreference":true},
{"operationType":"Delete","id":"a","ifNoneMatch":"*"},
{"operationType":"Read","id":"a","minimalReturnPreference":true}]"#;

fn shown(write: WriteItem) -> String {
    let WriteItem { act, partition_key, condition, minimal, indexing, .. } = write;
    let act = match act {
        Act::Create(text) => format!("create {text}"),
        Act::Upsert(text) => format!("upsert {text}"),
        Act::Replace(id, text) => format!("replace {id} {text}"),
        other => format!("{other:?}"),
    };
    let key = partition_key.map(|key| key.to_json());
    let Condition { if_match, if_none_match } = condition;
    format!("{act} {key:?} {if_match:?} {if_none_match:?} {minimal} {indexing:?}")
}

fn read_all(body: Vec<u8>) -> (BatchForm, Vec<String>) {
    let (form, steps) = read(&body.into(), false, item).unwrap();
    (form, steps.into_iter().map(|step| shown(step.unwrap())).collect())
}

/// In binary rows as in JSON, the limit is a limit of the body.
#[test]
fn rows_have_as_many_bytes_as_text() {
    let body = |length: usize| {
        let id = "a".repeat(length);
        Bytes::from(hybrid_row::body([row(2).with("id", Some(RowValue::Text(&id)))]))
    };
    let around = BATCH_BYTES_MAX - 20_000;
    let other = body(around).len() - around;
    for more in [-1, 0, 1] {
        let size = BATCH_BYTES_MAX.saturating_add_signed(more);
        let body = body(size - other);
        assert_eq!(body.len(), size);
        let read = read(&body, false, item).map(|(_, steps)| steps.len());
        let expected = if more > 0 { Err(ErrorKind::TooLarge) } else { Ok(1) };
        assert_eq!(read.map_err(|error| error.kind), expected, "{size} bytes");
    }
}

#[test]
fn both_forms_mean_the_same() {
    let last = [
        r#"Delete("a") None None Some("*") false ByPolicy"#,
        r#"Read("a") None None None false ByPolicy"#,
    ];
    let (form, steps) = read_all(hybrid_row::body(rows()));
    assert_eq!(form, BatchForm::Rows);
    assert_eq!(
        steps[..3],
        [
            r#"create {"id":"a","ttl":5} None None None false Exclude"#,
            r#"upsert {"ttl":3} None None None false Include"#,
            r#"replace a {"ttl":-1} Some("[\"a\",1,{}]") Some("\"e\"") None true ByPolicy"#,
        ]
    );
    assert_eq!(steps[3..], last);
    let (form, steps) = read_all(TEXT.into());
    assert_eq!(form, BatchForm::Text);
    assert_eq!(
        steps[..3],
        [
            r#"create {"id":"a"} None None None false ByPolicy"#,
            r#"upsert {"ttl":3} None None None false ByPolicy"#,
            r#"replace a {} Some("[\"a\",1,{}]") Some("\"e\"") None true ByPolicy"#,
        ]
    );
    assert_eq!(steps[3..], last);
}

/// Refused with 400, or 501 for what is not there yet; or read.
fn carry_out(body: Vec<u8>) {
    if let Err(error) = read(&body.into(), false, item) {
        let is_known = matches!(error.kind, ErrorKind::BadRequest | ErrorKind::NotImplemented);
        assert!(is_known, "{error:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bent_batches_are_refused_or_read(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        end in any::<prop::sample::Index>(),
    ) {
        for whole in [hybrid_row::body(rows()), TEXT.into()] {
            let mut body = whole.clone();
            for (at, byte) in &changes {
                let at = at.index(body.len());
                body[at] = *byte;
            }
            carry_out(body);
            carry_out(whole[..end.index(whole.len())].to_vec());
        }
    }

    /// The rows themselves are well, and what is in them is anything.
    #[test]
    fn strange_operations_are_refused_or_read(
        number in -1..25,
        kind in prop::option::of(0..4),
        texts in prop::collection::vec(prop::option::of(r#"[\[\]{}"a1,.eE-]{0,8}"#), 4),
        bytes in prop::option::of(prop::collection::vec(any::<u8>(), 0..20)),
        seconds in prop::option::of(any::<i32>()),
    ) {
        let text = |n: usize| texts[n].as_deref().map(RowValue::Text);
        let bytes = bytes.as_deref().map(RowValue::Binary);
        for body in [bytes, text(3).map(|_| RowValue::Binary(br#"{"id":"a"}"#))] {
            let row = row(number)
                .with("resourceType", kind.map(RowValue::Int))
                .with("partitionKey", text(0))
                .with("id", text(1))
                .with("indexingDirective", text(2))
                .with("binaryId", bytes)
                .with("resourceBody", body)
                .with("timeToLiveInSeconds", seconds.map(RowValue::Int));
            carry_out(hybrid_row::body([row]));
        }
    }
}
