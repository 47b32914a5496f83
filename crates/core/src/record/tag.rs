//! The tags of records, one byte each. A number that was used once is never used again for another meaning.

pub const SET_STRING: u8 = 1;
pub const WRITE_STRING: u8 = 2;
pub const DELETE: u8 = 3;
pub const EXPIRE: u8 = 4;
pub const RENAME: u8 = 5;
pub const COPY: u8 = 6;
pub const MOVE: u8 = 7;
pub const FLUSH: u8 = 8;
pub const SWAP_DB: u8 = 9;
pub const STREAM_CREATE: u8 = 16;
pub const ADD: u8 = 17;
pub const DELETE_ENTRIES: u8 = 18;
pub const TRIM: u8 = 19;
pub const TRIM_ENTRIES: u8 = 20;
pub const SET_STREAM: u8 = 21;
pub const IDEMPOTENCE_SETTINGS: u8 = 22;
pub const REMEMBER: u8 = 23;
pub const FORGET: u8 = 24;
pub const DUPLICATES: u8 = 25;
pub const RETENTION_SETTINGS: u8 = 26;
pub const GROUP_CREATE: u8 = 32;
pub const GROUP_POSITION: u8 = 33;
pub const GROUP_DESTROY: u8 = 34;
pub const CONSUMER_CREATE: u8 = 35;
pub const CONSUMER_DELETE: u8 = 36;
pub const CONSUMER_SEEN: u8 = 37;
pub const DELIVER: u8 = 38;
pub const CLAIM: u8 = 39;
pub const ACKNOWLEDGE: u8 = 40;
pub const GIVE_BACK: u8 = 41;
pub const GROUP_OPTIONS: u8 = 42;
pub const ACKNOWLEDGE_RANGE: u8 = 43;
pub const GIVE_BACK_ALL: u8 = 44;
pub const DROP: u8 = 45;
pub const SCAN_START: u8 = 46;
pub const DROP_RANGE: u8 = 47;
pub const DELAY: u8 = 50;
pub const HOLD: u8 = 51;
pub const GIVE: u8 = 52;
pub const DUE: u8 = 53;
pub const WORK_POLICY: u8 = 60;
pub const WORK_ROW: u8 = 61;
pub const WORK_FORGET: u8 = 62;
pub const REDRIVE: u8 = 63;
pub const WORK_DONE: u8 = 64;

/// Every tag there is, ascending, with what `docs/formats.md` calls the record.
pub const TAGS: &[(u8, &str)] = &[
    (1, "string set"),
    (2, "part of a string written"),
    (3, "key deleted"),
    (4, "expiry set"),
    (5, "key renamed"),
    (6, "key copied"),
    (7, "key moved"),
    (8, "flushed"),
    (9, "databases swapped"),
    (16, "stream created"),
    (17, "entry added"),
    (18, "entries deleted"),
    (19, "trimmed below"),
    (20, "entries trimmed"),
    (21, "counters of a stream"),
    (22, "settings of idempotent adding"),
    (23, "message remembered"),
    (24, "messages forgotten"),
    (25, "duplicates so far"),
    (26, "retention"),
    (32, "group created"),
    (33, "position of a group"),
    (34, "group destroyed"),
    (35, "consumer created"),
    (36, "consumer deleted"),
    (37, "consumer seen"),
    (38, "delivered"),
    (39, "claimed"),
    (40, "acknowledged"),
    (41, "given back"),
    (42, "options of a group"),
    (43, "range acknowledged"),
    (44, "all of a consumer given back"),
    (45, "dropped, not acknowledged"),
    (46, "where XAUTOCLAIM goes on"),
    (47, "range dropped, not acknowledged"),
    (50, "delayed"),
    (51, "held by a group"),
    (52, "given"),
    (53, "due"),
    (60, "policy of a group"),
    (61, "row of a ledger"),
    (62, "rows of a ledger forgotten"),
    (63, "redrive of a stream"),
    (64, "row of a ledger, whose entry is acknowledged with it"),
];
