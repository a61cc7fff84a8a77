//! Who asks, and what that allows.
//!
//! Whoever verifies a request says who sent it; the operation says what it needs; here it is
//! decided, and nowhere else.

use dayfly_model::{Error, ErrorKind, Result};

use crate::operation::Operation;

/// Who sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Somebody with the primary key.
    Primary,
    /// Somebody with the secondary key, which has the same rights.
    Secondary,
    /// Somebody with the key that reads.
    ReadOnly,
}

/// What an operation needs the right to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// It changes nothing.
    Read,
    /// It changes something.
    Write,
}

impl Caller {
    /// As the audit log calls them.
    pub fn name(self) -> &'static str {
        match self {
            Caller::Primary => "primary key",
            Caller::Secondary => "secondary key",
            Caller::ReadOnly => "read-only key",
        }
    }

    /// Whether they may do this.
    pub(crate) fn check(self, operation: &Operation) -> Result<()> {
        match (self, operation.right()) {
            (Caller::Primary | Caller::Secondary, _) | (Caller::ReadOnly, Right::Read) => Ok(()),
            (Caller::ReadOnly, Right::Write) => Err(Error::new(
                ErrorKind::Forbidden,
                "The read-only key does not allow this operation.",
            )),
        }
    }
}

impl Operation {
    /// What it needs. Every operation has its line here.
    fn right(&self) -> Right {
        match self {
            Operation::ReadTime
            | Operation::ReadDatabase { .. }
            | Operation::ListDatabases { .. }
            | Operation::ReadContainer { .. }
            | Operation::ListContainers { .. }
            | Operation::ReadEncryptionKey { .. }
            | Operation::ListEncryptionKeys { .. }
            | Operation::ReadItem { .. }
            | Operation::ListItems { .. }
            | Operation::ReadChanges(_)
            | Operation::QueryItems(_)
            | Operation::ExplainQuery(_)
            | Operation::PlanQuery(_)
            | Operation::QueryFeed(_)
            | Operation::Refuse { .. }
            | Operation::ListRanges { .. }
            | Operation::ListConflicts { .. }
            | Operation::FindConflict { .. }
            | Operation::ListOffers { .. }
            | Operation::ReadOffer { .. }
            | Operation::ReadTtl { .. }
            | Operation::ForecastTtl { .. }
            | Operation::WhatIfTtl { .. }
            | Operation::ExplainTtl { .. }
            | Operation::SurveyContainers { .. }
            | Operation::SurveyContainer { .. }
            | Operation::SurveyItems(_)
            | Operation::ReadThroughput { .. }
            | Operation::ReadClock => Right::Read,

            Operation::CreateDatabase { .. }
            | Operation::DeleteDatabase { .. }
            | Operation::CreateContainer { .. }
            | Operation::ReplaceContainer(_)
            | Operation::DeleteContainer { .. }
            | Operation::CreateEncryptionKey { .. }
            | Operation::ReplaceEncryptionKey { .. }
            | Operation::ReplaceOffer(_)
            | Operation::SplitRanges { .. }
            | Operation::WriteItem(_)
            | Operation::WriteBatch(_)
            | Operation::DeletePartition { .. }
            | Operation::SwitchThroughput { .. }
            | Operation::ShareThroughput { .. }
            | Operation::MoveClock { .. }
            | Operation::Reset
            | Operation::RunPurge { .. }
            | Operation::PausePurge { .. }
            | Operation::ResumePurge { .. } => Right::Write,
        }
    }
}
