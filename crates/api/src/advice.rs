//! Which indexes a query uses, as a header.
//!
//! | form   | text                  | what it holds                                  |
//! |--------|-----------------------|------------------------------------------------|
//! | first  | JSON in base64        | four lists, each index with its impact         |
//! | second | JSON, percent-encoded | two lists each of those used and those missing |
//!
//! A header that is too long is not cut, since nobody could read it then: the
//! last indexes are left out until it fits.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dayfly_engine::operation::AdviceForm;
use dayfly_engine::reply::{IndexAdvice, Indexes, SingleIndex};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

/// The longest header of the first form; some clients take 16 KB of headers in all.
const FIRST_BYTES_MAX: usize = 8 * 1024;
/// That of the second form, which the service writes with names in full. It has up to
/// 64 KB for it, and so has .NET for all headers.
const SECOND_BYTES_MAX: usize = 48 * 1024;

/// The header.
pub(crate) fn write(form: AdviceForm, mut advice: IndexAdvice) -> String {
    let max = bytes_max(form);
    loop {
        let text = match form {
            AdviceForm::First => BASE64.encode(first(&advice).to_string()),
            AdviceForm::Second => {
                utf8_percent_encode(&second(&advice).to_string(), NON_ALPHANUMERIC).to_string()
            }
        };
        if text.len() <= max || !drop_last(&mut advice) {
            return text;
        }
    }
}

fn bytes_max(form: AdviceForm) -> usize {
    match form {
        AdviceForm::First => FIRST_BYTES_MAX,
        AdviceForm::Second => SECOND_BYTES_MAX,
    }
}

/// Leaves out one index, the least important first. `false`: there was none.
fn drop_last(advice: &mut IndexAdvice) -> bool {
    let IndexAdvice { used, missing } = advice;
    missing.composite.pop().is_some()
        || missing.single.pop().is_some()
        || used.single.pop().is_some()
        || used.composite.pop().is_some()
}

fn first(advice: &IndexAdvice) -> Value {
    let impact = |is_high: bool| if is_high { "High" } else { "Low" };
    let single = |index: &SingleIndex| {
        json!({
            "FilterExpression": "",
            "IndexSpec": index.path,
            "FilterPreciseSet": index.is_selective,
            "IndexPreciseSet": index.is_selective,
            "IndexImpactScore": impact(index.is_selective),
        })
    };
    let composite = |specs: &Vec<String>| {
        json!({
            "IndexSpecs": specs,
            "IndexPreciseSet": true,
            "IndexImpactScore": impact(true),
        })
    };
    let singles = |indexes: &Indexes| indexes.single.iter().map(single).collect::<Vec<_>>();
    let composites =
        |indexes: &Indexes| indexes.composite.iter().map(composite).collect::<Vec<_>>();
    json!({
        "UtilizedSingleIndexes": singles(&advice.used),
        "PotentialSingleIndexes": singles(&advice.missing),
        "UtilizedCompositeIndexes": composites(&advice.used),
        "PotentialCompositeIndexes": composites(&advice.missing),
    })
}

fn second(advice: &IndexAdvice) -> Value {
    let told = |indexes: &Indexes| {
        let single = indexes.single.iter().map(|index| json!({ "IndexSpec": index.path }));
        let composite = indexes
            .composite
            .iter()
            .map(|specs| json!({ "IndexSpecs": specs, "IndexImpactScore": "High" }));
        json!({
            "SingleIndexes": single.collect::<Vec<_>>(),
            "CompositeIndexes": composite.collect::<Vec<_>>(),
        })
    };
    json!({ "UtilizedIndexes": told(&advice.used), "PotentialIndexes": told(&advice.missing) })
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;

    use super::*;

    fn advice(paths: &[&str]) -> IndexAdvice {
        let single = |path: &&str| SingleIndex { path: (*path).to_owned(), is_selective: true };
        let composite = vec![vec!["/a ASC".to_owned(), "/b DESC".to_owned()]];
        IndexAdvice {
            used: Indexes { single: paths.iter().map(single).collect(), composite: Vec::new() },
            missing: Indexes { single: Vec::new(), composite },
        }
    }

    fn read(form: AdviceForm, header: &str) -> Value {
        let text = match form {
            AdviceForm::First => String::from_utf8(BASE64.decode(header).unwrap()).unwrap(),
            AdviceForm::Second => percent_decode_str(header).decode_utf8().unwrap().into_owned(),
        };
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn both_forms_are_read_again() {
        let header = write(AdviceForm::First, advice(&["/pk/?"]));
        assert_eq!(
            read(AdviceForm::First, &header),
            json!({
                "UtilizedSingleIndexes": [{
                    "FilterExpression": "", "IndexSpec": "/pk/?", "FilterPreciseSet": true,
                    "IndexPreciseSet": true, "IndexImpactScore": "High",
                }],
                "PotentialSingleIndexes": [],
                "UtilizedCompositeIndexes": [],
                "PotentialCompositeIndexes": [{
                    "IndexSpecs": ["/a ASC", "/b DESC"], "IndexPreciseSet": true,
                    "IndexImpactScore": "High",
                }],
            })
        );
        let header = write(AdviceForm::Second, advice(&["/\"ü b\"/?"]));
        assert!(header.is_ascii());
        assert_eq!(
            read(AdviceForm::Second, &header),
            json!({
                "UtilizedIndexes": {
                    "SingleIndexes": [{"IndexSpec": "/\"ü b\"/?"}], "CompositeIndexes": [],
                },
                "PotentialIndexes": {
                    "SingleIndexes": [],
                    "CompositeIndexes": [
                        {"IndexSpecs": ["/a ASC", "/b DESC"], "IndexImpactScore": "High"}
                    ],
                },
            })
        );
    }

    #[test]
    fn a_long_header_leaves_some_out_and_can_be_read() {
        let long = format!("/{}/?", "ü".repeat(900));
        for (form, kept) in [(AdviceForm::First, 3), (AdviceForm::Second, 8)] {
            let header = write(form, advice(&[long.as_str(); 16]));
            assert!(header.len() <= bytes_max(form), "{}", header.len());
            let read = read(form, &header);
            let (used, missing) = match form {
                AdviceForm::First => {
                    (&read["UtilizedSingleIndexes"], &read["PotentialCompositeIndexes"])
                }
                AdviceForm::Second => {
                    let (used, missing) = (&read["UtilizedIndexes"], &read["PotentialIndexes"]);
                    (&used["SingleIndexes"], &missing["CompositeIndexes"])
                }
            };
            assert_eq!((used.as_array().unwrap().len(), missing), (kept, &json!([])), "{form:?}");
        }
        let header = write(AdviceForm::Second, advice(&["x".repeat(9000).as_str()]));
        assert!(header.len() > 9000, "{}", header.len());
        let header = write(AdviceForm::Second, advice(&["x".repeat(50_000).as_str()]));
        assert!(header.len() < 400, "{}", header.len());
    }
}
