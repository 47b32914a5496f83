//! Every fixed bound of the engine, with its reason. Bounds that a user may change are settings (`settings.rs`); their
//! defaults and ranges stand there. Nothing outside this file may invent a limit of its own.

/// Number of databases that `SELECT` can reach. Redis's default; clients and tests rely on 16.
pub const DATABASES: usize = 16;

/// Longest inline command line, in bytes, before its newline has come. Redis: `PROTO_INLINE_MAX_SIZE`.
pub const INLINE_MAX_BYTES: usize = 64 * 1024;

/// Replies that a client has not taken, beyond which nothing more of it is read or carried out, where the settings have
/// no soft limit. Generous: a client may write all its commands before it reads the first reply.
pub const UNREAD_MAX_BYTES: usize = 256 << 20;

/// Most arguments in one command. Redis: `INT_MAX`. Nothing is taken for what was announced and has not come.
pub const MULTIBULK_MAX: i64 = i32::MAX as i64;

/// Before authentication a client may send no more than this many arguments … Redis: 10.
pub const ARGUMENTS_MAX_UNAUTHENTICATED: usize = 10;

/// … of no more than this many bytes each. Redis: 16384.
pub const BULK_MAX_UNAUTHENTICATED_BYTES: usize = 16 * 1024;

/// With so many bytes waiting for the log nothing more is read or carried out: the disk is slower than the clients. What one
/// turn makes is one frame of the log, so this also keeps frames far below what they can hold (4 GiB).
pub const LOG_AHEAD_MAX_BYTES: usize = 64 << 20;

/// Largest command, and largest transaction, whatever `client-query-buffer-limit` says: its records are never divided, and have
/// to fit into a frame of the log.
pub const COMMAND_MAX_BYTES: usize = 2 << 30;

/// Bytes of records that one script makes: they are never divided either.
pub const SCRIPT_RECORDS_MAX_BYTES: usize = 256 * 1024 * 1024;

/// Largest sum of field and value bytes of one stream entry. Redis: `STREAM_LISTPACK_MAX_SIZE`, 1 GiB.
pub const ENTRY_MAX_BYTES: usize = 1 << 30;

/// Blocks in one span of a stream's entries: the unit in which a large stream is shared with a snapshot and freed.
pub const BLOCKS_PER_SPAN: usize = 256;

/// Entries in one chunk of a pending entries list: the unit that an index is kept for.
pub const PENDING_PER_CHUNK: usize = 128;

/// Chunks in one node of a pending entries list: the unit that is shared with a snapshot and freed.
pub const CHUNKS_PER_NODE: usize = 128;

/// Slots of one block of entries, whatever `stream-node-max-entries` says: searching a block must stay short.
pub const BLOCK_SLOTS_MAX: usize = 10_000;

/// Bytes of one block of entries, whatever `stream-node-max-bytes` says: sealing a block copies it. A single entry may be larger.
pub const BLOCK_BYTES_MAX: usize = 256 * 1024;

/// Distinct lists of field names that a block stores once. Entries with yet other names carry them along.
pub const SCHEMAS_PER_BLOCK: usize = 4;

/// Bits of a password that ACL GENPASS makes at most. Redis: 4096.
pub const GENPASS_MAX_BITS: i64 = 4096;

/// Every how many slots a block can be entered: an ID is found by decoding at most this many.
pub const SLOTS_PER_MARK: usize = 8;

/// Most places that one SCAN looks at, whatever its COUNT: a call must stay short.
pub const SCAN_PLACES_MAX: usize = 50_000;

/// Memory of the interpreter of scripts: what scripts hold while they run, and those that are kept.
pub const SCRIPT_MEMORY_MAX_BYTES: usize = 256 * 1024 * 1024;

/// With more than this held by the interpreter after a script its rubbish is collected at once …
pub const SCRIPT_MEMORY_COLLECT_BYTES: usize = 16 * 1024 * 1024;

/// … and with more than this left it is made anew; the scripts are kept.
pub const SCRIPT_MEMORY_RENEW_BYTES: usize = 64 * 1024 * 1024;

/// Scripts kept because EVAL ran them; the one not used for longest goes first. Redis: 500.
pub const SCRIPTS_OF_EVAL_MAX: usize = 500;

/// Bytes of all scripts kept, those of SCRIPT LOAD included, which stay until SCRIPT FLUSH.
pub const SCRIPTS_MAX_BYTES: usize = 64 * 1024 * 1024;

/// Bytes of what a script returns, or makes JSON of: the same string may stand in a table any number of times.
pub const SCRIPT_REPLY_MAX_BYTES: usize = 256 * 1024 * 1024;

/// Values of what a script returns, or makes JSON of, between two looks at the clock.
pub const SCRIPT_VALUES_PER_LOOK: usize = 4096;

/// Depth of a table that a script returns, and of JSON. Redis stops at the size of Lua's stack.
pub const SCRIPT_REPLY_DEPTH_MAX: usize = 1000;

/// Values that a script may give to one function or take from one table at once (`unpack`); Lua's stack ends there.
pub const SCRIPT_VALUES_MAX: usize = 7999;

/// Bytes of a pattern for `string.find` and the like: matching takes stack for each piece of it.
pub const SCRIPT_PATTERN_MAX_BYTES: usize = 4096;

/// Instructions of a script between two looks at the clock.
pub const SCRIPT_INSTRUCTIONS_PER_LOOK: u32 = 50_000;

/// How many times `busy-reply-threshold` a script may run that has changed something.
pub const SCRIPT_HARD_BOUND_FACTOR: u64 = 10;

/// With more replies than this waiting to be sent to a connection its next command is not carried out yet: one packet of
/// short commands may ask for any number of long replies.
pub const OUTPUT_AHEAD_MAX_BYTES: usize = 16 * 1024 * 1024;

/// Rows of a work ledger that stand together in a chunk: the unit in which it is shared with a snapshot and freed …
pub const LEDGER_CHUNK_ROWS: usize = 128;

/// … unless they have so many bytes before: what a snapshot shares is copied by the first change.
pub const LEDGER_CHUNK_BYTES: usize = 16 * 1024;

/// Bytes of a work id, a digest, a receipt or a reason: a ledger keeps a million of them.
pub const WORK_TEXT_MAX_BYTES: usize = 4096;

/// Greatest LEDGERLEN: rows are found by 32 bits of their numbers.
pub const LEDGER_LEN_MAX: u64 = 1 << 30;

/// Entries or rows that XWORK AUDIT and XWORK LOG look at in one turn.
pub const WORK_LOOKS_PER_TURN: usize = 2000;

/// Entries of a dead-letter stream that XWORK REDRIVE looks at in one turn.
pub const REDRIVE_PER_TURN: u64 = 500;
