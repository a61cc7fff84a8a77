//! What kind of request it is, for those who count and log: a small, fixed set of
//! names, so that nobody's requests make more of them.

use dayfly_engine::operation::{Act, Operation, WriteItem};

macro_rules! kinds {
    ($($(#[$note:meta])* $kind:ident $name:literal;)+) => {
        /// A kind of request.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($(#[$note])* $kind,)+
        }

        impl Kind {
            /// All kinds, in the order of the table.
            pub(crate) const ALL: &'static [Kind] = &[$(Kind::$kind,)+];

            /// Its name in metrics and in the request log.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Kind::$kind => $name,)+
                }
            }
        }
    };
}

kinds! {
    /// It did not become an operation.
    #[default]
    Refused          "refused";
    ReadAccount      "read_account";
    /// Where the ranges of a container are.
    ReadAddresses    "read_addresses";
    CreateDatabase   "create_database";
    ReadDatabase     "read_database";
    ListDatabases    "list_databases";
    DeleteDatabase   "delete_database";
    CreateContainer  "create_container";
    ReadContainer    "read_container";
    ListContainers   "list_containers";
    ReplaceContainer "replace_container";
    DeleteContainer  "delete_container";
    CreateKey        "create_encryption_key";
    ReadKey          "read_encryption_key";
    ListKeys         "list_encryption_keys";
    ReplaceKey       "replace_encryption_key";
    CreateItem       "create_item";
    UpsertItem       "upsert_item";
    ReplaceItem      "replace_item";
    PatchItem        "patch_item";
    DeleteItem       "delete_item";
    WriteBatch       "write_batch";
    /// All items of a partition key are deleted.
    DeletePartition  "delete_partition";
    ReadItem         "read_item";
    ListItems        "list_items";
    ReadChanges      "read_changes";
    QueryItems       "query_items";
    /// A query of anything else.
    QueryResources   "query_resources";
    PlanQuery        "plan_query";
    ListRanges       "list_ranges";
    ListConflicts    "list_conflicts";
    ReadConflict     "read_conflict";
    ListOffers       "list_offers";
    ReadOffer        "read_offer";
    ReplaceOffer     "replace_offer";
    Admin            "admin";
    /// The call that reads the request log.
    ReadRequests     "read_requests";
    /// Somebody looks how the server fares, again and again: the portal.
    Watch            "watch";
    /// A page that is open to all, for those who watch.
    Page             "page";
}

impl Kind {
    /// How many there are.
    pub(crate) const COUNT: usize = Kind::ALL.len();

    /// The kind of a request that asks for this.
    pub(crate) fn of(operation: &Operation) -> Kind {
        match operation {
            Operation::ReadTime => Kind::ReadAccount,
            Operation::CreateDatabase { .. } => Kind::CreateDatabase,
            Operation::ReadDatabase { .. } => Kind::ReadDatabase,
            Operation::ListDatabases { .. } => Kind::ListDatabases,
            Operation::DeleteDatabase { .. } => Kind::DeleteDatabase,
            Operation::CreateContainer { .. } => Kind::CreateContainer,
            Operation::ReadContainer { .. } => Kind::ReadContainer,
            Operation::ListContainers { .. } => Kind::ListContainers,
            Operation::ReplaceContainer(_) => Kind::ReplaceContainer,
            Operation::DeleteContainer { .. } => Kind::DeleteContainer,
            Operation::CreateEncryptionKey { .. } => Kind::CreateKey,
            Operation::ReadEncryptionKey { .. } => Kind::ReadKey,
            Operation::ListEncryptionKeys { .. } => Kind::ListKeys,
            Operation::ReplaceEncryptionKey { .. } => Kind::ReplaceKey,
            Operation::WriteItem(WriteItem { act, .. }) => match act {
                Act::Create(_) => Kind::CreateItem,
                Act::Upsert(_) => Kind::UpsertItem,
                Act::Replace(..) => Kind::ReplaceItem,
                Act::Patch(..) => Kind::PatchItem,
                Act::Delete(_) => Kind::DeleteItem,
                Act::Read(_) => Kind::ReadItem,
            },
            Operation::WriteBatch(_) => Kind::WriteBatch,
            Operation::DeletePartition { .. } => Kind::DeletePartition,
            Operation::ReadItem { .. } => Kind::ReadItem,
            Operation::ListItems { .. } => Kind::ListItems,
            Operation::ReadChanges(_) => Kind::ReadChanges,
            Operation::QueryItems(_) => Kind::QueryItems,
            Operation::PlanQuery(_) => Kind::PlanQuery,
            Operation::QueryFeed(_) => Kind::QueryResources,
            Operation::Refuse { .. } => Kind::Refused,
            Operation::ListRanges { .. } => Kind::ListRanges,
            Operation::ListConflicts { .. } => Kind::ListConflicts,
            Operation::FindConflict { .. } => Kind::ReadConflict,
            Operation::ListOffers { .. } => Kind::ListOffers,
            Operation::ReadOffer { .. } => Kind::ReadOffer,
            Operation::ReplaceOffer(_) => Kind::ReplaceOffer,
            Operation::SurveyContainers { .. } | Operation::SurveyContainer { .. } => Kind::Watch,
            Operation::ExplainQuery(_)
            | Operation::SurveyItems(_)
            | Operation::ReadTtl { .. }
            | Operation::ForecastTtl { .. }
            | Operation::WhatIfTtl { .. }
            | Operation::ExplainTtl { .. }
            | Operation::SplitRanges { .. }
            | Operation::ReadThroughput { .. }
            | Operation::SwitchThroughput { .. }
            | Operation::ShareThroughput { .. }
            | Operation::ReadClock
            | Operation::MoveClock { .. }
            | Operation::Reset
            | Operation::RunPurge { .. }
            | Operation::PausePurge { .. }
            | Operation::ResumePurge { .. } => Kind::Admin,
        }
    }

    /// Whether the log tells of it. Who watches the server asks again and again, and
    /// would push out what happened.
    pub(crate) fn is_logged(self) -> bool {
        !matches!(self, Kind::Page | Kind::ReadRequests | Kind::Watch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_place_and_name() {
        for (place, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, place);
            let same = Kind::ALL.iter().filter(|other| other.name() == kind.name()).count();
            assert_eq!(same, 1, "{}", kind.name());
        }
    }
}
