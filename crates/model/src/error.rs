//! Every way a request can fail: one row each.
//!
//! A kind is the contract: status, substatus and code, which SDKs act on. The
//! message is for a person. A new failure is a new row, never a status written
//! somewhere else.

use std::fmt;

use crate::meter::Throttled;

/// What the client sees of an error kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// The HTTP status.
    pub status: u16,
    /// `x-ms-substatus`; 0 is not sent.
    pub substatus: u32,
    /// `code` in the body.
    pub code: &'static str,
}

macro_rules! error_kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident $status:literal $substatus:literal $code:literal;)+) => {
        /// What went wrong, by what the caller can do about it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorKind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl ErrorKind {
            /// All kinds, in the order of the table.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$kind,)+];

            /// The row of the table.
            pub fn wire(self) -> Wire {
                match self {
                    $(ErrorKind::$kind => Wire {
                        status: $status,
                        substatus: $substatus,
                        code: $code,
                    },)+
                }
            }
        }
    };
}

error_kinds! {
    /// The request itself is wrong; sending it again will not help.
    BadRequest              400    0 "BadRequest";
    /// The partition key does not fit the container or the item.
    PartitionKeyMismatch    400 1001 "BadRequest";
    /// The client has to ask for a plan, and merge what the ranges answer.
    NotServable             400 1004 "BadRequest";
    /// The container was deleted and made again since the client looked.
    ContainerRidMismatch    400 1024 "BadRequest";
    /// No valid signature.
    Unauthorized            401    0 "Unauthorized";
    /// The key does not allow this, or the date is too far off.
    Forbidden               403    0 "Forbidden";
    /// The container holds all that it may; deletes still work, and what expires makes room.
    QuotaReached            403 1014 "Forbidden";
    /// No such resource, or its time to live has passed.
    NotFound                404    0 "NotFound";
    /// The session token names a commit that has not happened here.
    SessionNotAvailable     404 1002 "NotFound";
    /// The database or container above the resource does not exist.
    OwnerNotFound           404 1003 "NotFound";
    /// The route exists, but not with this verb.
    MethodNotAllowed        405    0 "MethodNotAllowed";
    /// The client took too long to send the request.
    RequestTimeout          408    0 "RequestTimeout";
    /// The id or unique key is taken.
    Conflict                409    0 "Conflict";
    /// The name of a container means another one than the client has cached, or none.
    NameCacheStale          410 1000 "Gone";
    /// The partition key range does not exist any more.
    RangeGone               410 1002 "Gone";
    /// `If-Match` named another version.
    PreconditionFailed      412    0 "PreconditionFailed";
    /// The item is not what the condition of a patch asks for.
    PatchConditionNotMet    412 1110 "PreconditionFailed";
    /// The item or the request is over the size limit.
    TooLarge                413    0 "RequestEntityTooLarge";
    /// The request calls the server by a name that is not its own.
    Misdirected             421    0 "MisdirectedRequest";
    /// The answer to a batch has no room for this operation's; send it again by itself.
    AnswerTooLarge          413 3402 "RequestEntityTooLarge";
    /// Another operation of the batch failed, and this one with it.
    FailedDependency        424    0 "FailedDependency";
    /// More was asked for than the throughput gives; try again a little later.
    TooManyRequests         429 3200 "TooManyRequests";
    /// More was asked for than the share of a throughput bucket gives.
    ShareSpent              429 3212 "TooManyRequests";
    /// The request line or the headers are over the limit.
    HeaderTooLarge          431    0 "RequestHeaderFieldsTooLarge";
    /// Somebody else wrote at the same time; send it again.
    RetryWith               449    0 "RetryWith";
    /// Our fault: an invariant did not hold.
    Internal                500    0 "InternalServerError";
    /// A feature of the service that dayfly does not have yet.
    NotImplemented          501    0 "NotImplemented";
    /// The server cannot take this just now; try later.
    ServiceUnavailable      503    0 "ServiceUnavailable";
    /// The disk is full; reads and deletes still work.
    InsufficientStorage     507    0 "InsufficientStorage";
}

/// What is said of a feature that dayfly does not have yet, after its name.
const NOT_YET: &str = " is not supported by dayfly yet.";

/// A failure: its row in the table, and a sentence for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The row of the table.
    pub kind: ErrorKind,
    /// What was wrong with which value.
    pub message: String,
    /// After so many milliseconds it is worth to try again, if that is known.
    pub retry_after_ms: Option<u64>,
}

impl Error {
    /// A failure of `kind`, told by `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into(), retry_after_ms: None }
    }

    /// The request itself is wrong.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::BadRequest, message)
    }

    /// Bad input, in the words of the service and in the form that it gives them.
    pub fn in_its_words(sentence: impl Into<String>) -> Self {
        let body = serde_json::json!({ "Errors": [sentence.into()] });
        Error::bad_request(format!("Message: {body}"))
    }

    /// More was asked for than the throughput gives, or a throughput bucket may take of it:
    /// in the words of the service.
    pub fn throttled(throttled: Throttled) -> Self {
        let kind =
            if throttled.by_share { ErrorKind::ShareSpent } else { ErrorKind::TooManyRequests };
        let sentence = "Request rate is large. More Request Units may be needed, so no changes \
                        were made. Please retry this request later. Learn more: \
                        http://aka.ms/cosmosdb-error-429";
        let retry_after_ms = Some(throttled.wait_ms);
        Error { kind, retry_after_ms, ..Error::in_its_words(sentence) }
    }

    /// A feature of the service that dayfly does not have yet.
    pub fn not_yet(feature: &str) -> Self {
        Error::new(ErrorKind::NotImplemented, format!("{feature}{NOT_YET}"))
    }

    /// The feature that is missing, if that is what failed.
    pub fn missing(&self) -> Option<&str> {
        let is_missing = self.kind == ErrorKind::NotImplemented;
        is_missing.then(|| self.message.strip_suffix(NOT_YET).unwrap_or(&self.message))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.wire().code, self.message)
    }
}

impl std::error::Error for Error {}

/// The outcome of a rule.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_kinds_look_alike_on_the_wire() {
        let rows: HashSet<_> =
            ErrorKind::ALL.iter().map(|kind| (kind.wire().status, kind.wire().substatus)).collect();
        assert_eq!(rows.len(), ErrorKind::ALL.len());
    }

    #[test]
    fn a_missing_feature_is_told_by_its_name() {
        assert_eq!(Error::not_yet("Magic").missing(), Some("Magic"));
        assert_eq!(Error::bad_request("Magic is not supported by dayfly yet.").missing(), None);
    }

    /// 403/3 and 403/1008 make SDKs look for another region.
    #[test]
    fn no_kind_sends_clients_to_another_region() {
        for kind in ErrorKind::ALL {
            let wire = kind.wire();
            assert!(!(wire.status == 403 && matches!(wire.substatus, 3 | 1008)), "{kind:?}");
        }
    }
}
