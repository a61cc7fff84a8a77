//! Which properties clients encrypt before they send an item. The server keeps what they
//! agreed on, and never decrypts.
//!
//! | `includedPaths[]`       | must be                                                        |
//! |-------------------------|----------------------------------------------------------------|
//! | `path`                  | a slash and one name; once in the policy                       |
//! | `clientEncryptionKeyId` | a key of the database                                          |
//! | `encryptionType`        | `Deterministic` or `Randomized`                                |
//! | `encryptionAlgorithm`   | `AEAD_AES_256_CBC_HMAC_SHA256`                                 |
//!
//! `policyFormatVersion` is 1, also when it is absent, or 2. The id and what the partition
//! key starts with can be encrypted from version 2 on, and only `Deterministic`: the same
//! value must lead to the same place. A policy without paths is as good as none, and no
//! policy changes once the container is made: what is stored was encrypted by it.

use std::collections::HashSet;

use serde_json::Value;

use super::ContainerDefinition;
use crate::error::{Error, Result};

const ALGORITHM: &str = "AEAD_AES_256_CBC_HMAC_SHA256";
const DETERMINISTIC: &str = "Deterministic";
const RANDOMIZED: &str = "Randomized";

impl ContainerDefinition {
    /// The ids of the keys that its policy names.
    pub fn encryption_keys(&self) -> impl Iterator<Item = &str> {
        let paths = paths(self.client_encryption_policy.as_ref());
        paths.iter().filter_map(|path| path.get("clientEncryptionKeyId")?.as_str())
    }

    /// Checks all of its policy, but whether the keys are there.
    pub fn check_encryption(&self) -> Result<()> {
        let Some(policy) = &self.client_encryption_policy else { return Ok(()) };
        let version = match policy.get("policyFormatVersion") {
            None | Some(Value::Null) => 1,
            Some(version) => match version.as_u64() {
                Some(1) => 1,
                Some(2) => 2,
                _ => {
                    return Err(Error::bad_request(
                        "Supported versions of client encryption policy are 1 and 2.",
                    ));
                }
            },
        };
        if policy.get("includedPaths").is_some_and(|paths| !paths.is_array() && !paths.is_null()) {
            return Err(Error::bad_request(
                "The container's 'clientEncryptionPolicy' is invalid: its 'includedPaths' are no \
                 list.",
            ));
        }
        let mut known = HashSet::new();
        for path in paths(Some(policy)) {
            let name = self.check_path(path, version)?;
            if !known.insert(name) {
                return Err(Error::bad_request(format!(
                    "Duplicate path found: /{name} in client encryption policy."
                )));
            }
        }
        Ok(())
    }

    /// Checks one included path, and gives the name of its property.
    fn check_path<'p>(&self, path: &'p Value, version: u32) -> Result<&'p str> {
        let text = |member: &str| path.get(member).and_then(Value::as_str).unwrap_or_default();
        let needed = |what: &str| {
            Error::bad_request(format!(
                "{what} needs to be defined in ClientEncryptionIncludedPath."
            ))
        };
        let whole = path.get("path").and_then(Value::as_str).unwrap_or_default();
        if matches!(whole, "" | "/") {
            return Err(needed("Path"));
        }
        if text("clientEncryptionKeyId").is_empty() {
            return Err(needed("ClientEncryptionKeyId"));
        }
        let name = whole.strip_prefix('/').filter(|name| !name.contains('/'));
        let name =
            name.ok_or_else(|| Error::bad_request(format!("Invalid path '{whole}' in client encryption policy: it must be a slash and one name.")))?;
        if !matches!(text("encryptionType"), DETERMINISTIC | RANDOMIZED) {
            return Err(Error::bad_request(
                "EncryptionType should be either 'Deterministic' or 'Randomized'.",
            ));
        }
        if text("encryptionAlgorithm") != ALGORITHM {
            return Err(Error::bad_request(format!(
                "EncryptionAlgorithm should be '{ALGORITHM}'."
            )));
        }
        self.check_place(name, text("encryptionType"), version)?;
        Ok(name)
    }

    /// What says where an item is must be the same for the same value.
    fn check_place(&self, name: &str, kind: &str, version: u32) -> Result<()> {
        let mut starts = self.partition_key.paths.iter().filter_map(|path| path.segments().first());
        let part = match name {
            "id" => "",
            _ if starts.any(|first| first == name) => " which is part of the partition key",
            _ => return Ok(()),
        };
        let refused = match (version, kind) {
            (1, _) => format!(
                "Path: /{name}{part} cannot be encrypted with PolicyFormatVersion: 1. Please use \
                 PolicyFormatVersion: 2."
            ),
            (_, DETERMINISTIC) => return Ok(()),
            _ if part.is_empty() => {
                format!("Only Deterministic encryption type is supported for path: /{name}.")
            }
            _ => format!(
                "Path: /{name}{part} has to be encrypted with Deterministic type Encryption."
            ),
        };
        Err(Error::bad_request(refused))
    }
}

/// Checks that the policy stays as it is.
pub(super) fn check_kept(old: Option<&Value>, new: Option<&Value>) -> Result<()> {
    let same = match (paths(old).is_empty(), paths(new).is_empty()) {
        (true, true) => true,
        _ => old == new,
    };
    if same {
        return Ok(());
    }
    Err(Error::bad_request(
        "'clientEncryptionPolicy' cannot be changed as part of collection replace operation.",
    ))
}

fn paths(policy: Option<&Value>) -> &[Value] {
    let paths = policy.and_then(|policy| policy.get("includedPaths")).and_then(Value::as_array);
    paths.map(Vec::as_slice).unwrap_or_default()
}
