//! What the server adds to an item.
//!
//! It is not part of what the user wrote: it is taken from nothing that is sent, nothing is
//! partitioned by it or unique by it, and no policy puts it into the index.

/// The names of these properties.
pub const SYSTEM_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];
