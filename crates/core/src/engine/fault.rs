//! Error replies as values. Their texts are part of the protocol: clients compare them. Nothing here is an operational
//! error or a bug; those are typed errors of the server and asserts.

use std::borrow::Cow;

use crate::command::table::CommandSpec;

/// An error reply: the whole line behind its `-`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault(pub Cow<'static, [u8]>);

impl Fault {
    const fn text(text: &'static str) -> Fault {
        Fault(Cow::Borrowed(text.as_bytes()))
    }

    /// An error made of parts, some of which a client sent.
    pub fn owned(text: impl Into<Vec<u8>>) -> Fault {
        Fault(Cow::Owned(text.into()))
    }

    /// An error made of parts that may hold any bytes.
    pub fn concat(parts: &[&[u8]]) -> Fault {
        Fault(Cow::Owned(parts.concat()))
    }

    /// `ERR wrong number of arguments for '…' command`; the name in lower case, `xgroup|create` for subcommands.
    pub fn arity(name: &str) -> Fault {
        Fault::owned(format!("ERR wrong number of arguments for '{name}' command"))
    }

    /// A command that a subscriber may not send in RESP2.
    pub fn subscriber(spec: &CommandSpec) -> Fault {
        Fault::owned(format!(
            "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
            spec.name
        ))
    }

    /// The error of commands that need key and group.
    pub fn no_group(key: &[u8], group: &[u8]) -> Fault {
        Fault::concat(&[b"NOGROUP No such key '", key, b"' or consumer group '", group, b"'"])
    }

    /// The same of XREADGROUP.
    pub fn no_group_to_read(key: &[u8], group: &[u8]) -> Fault {
        let Fault(text) = Fault::no_group(key, group);
        Fault::concat(&[&text, b" in XREADGROUP with GROUP option"])
    }

    /// The error of XGROUP and XINFO, where the key is there.
    pub fn no_group_of_key(key: &[u8], group: &[u8]) -> Fault {
        Fault::concat(&[b"NOGROUP No such consumer group '", group, b"' for key name '", key, b"'"])
    }

    /// Subcommand known, arguments wrong.
    pub fn subcommand_syntax(subcommand: &[u8], command: &str) -> Fault {
        Fault::concat(&[
            b"ERR unknown subcommand or wrong number of arguments for '",
            clip(subcommand, 128),
            b"'. Try ",
            command.as_bytes(),
            b" HELP.",
        ])
    }
}

/// At most `n` bytes of what a client sent.
pub fn clip(text: &[u8], n: usize) -> &[u8] {
    &text[..text.len().min(n)]
}

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        #[allow(missing_docs)]
        impl Fault { $($(#[$doc])* pub const $name: Fault = Fault::text($text);)* }
    };
}

faults! {
    SYNTAX = "ERR syntax error";
    NOT_AN_INTEGER = "ERR value is not an integer or out of range";
    NOT_A_FLOAT = "ERR value is not a valid float";
    INVALID_ID = "ERR Invalid stream ID specified as stream command argument";
    INVALID_START = "ERR invalid start ID for the interval";
    INVALID_END = "ERR invalid end ID for the interval";
    WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value";
    NO_SUCH_KEY = "ERR no such key";
    OUT_OF_MEMORY = "OOM command not allowed when used memory > 'maxmemory'.";
    XADD_ZERO = "ERR The ID specified in XADD must be greater than 0-0";
    XADD_NOT_GREATER = "ERR The ID specified in XADD is equal or smaller than the target stream top item";
    XADD_EXHAUSTED = "ERR The stream has exhausted the last possible ID, unable to add more items";
    XADD_TOO_LARGE = "ERR Elements are too large to be stored";
    IDMP_TWICE = "ERR IDMP/IDMPAUTO specified multiple times";
    IDMP_NOT_AUTO = "ERR IDMP/IDMPAUTO can be used only with auto-generated IDs";
    IDMP_NO_PRODUCER = "ERR IDMP requires a non-empty producer ID";
    IDMP_NO_MESSAGE = "ERR IDMP requires a non-empty idempotent ID";
    IDMPAUTO_NO_PRODUCER = "ERR IDMPAUTO requires a non-empty producer ID";
    XADDM_COUNT = "ERR COUNT must be > 0";
    XADDM_FIELDS = "ERR The number of fields must be > 0";
    XADD_DELAY = "ERR DELAY must be a number of milliseconds, 0 or more";
    XADD_NOT_BEFORE = "ERR NOTBEFORE must be a Unix time in milliseconds, 0 or more";
    XADD_DELAY_TWICE = "ERR syntax error, DELAY or NOTBEFORE can be given once";
    XCFGSET_FORCE_ALONE = "ERR syntax error, FORCE goes with MAXLEN, MAXBYTES, MAXAGE or RETAIN";
    XCFGSET_NOTHING = "ERR At least one parameter must be given to XCFGSET";
    XIDMPRECORD_NO_PRODUCER = "ERR XIDMPRECORD requires a non-empty producer ID";
    XIDMPRECORD_NO_MESSAGE = "ERR XIDMPRECORD requires a non-empty idempotent ID";
    XIDMPRECORD_NO_ENTRY = "ERR The stream has no entry with the ID given to XIDMPRECORD";
    XIDMPRECORD_OTHER_ENTRY = "ERR The message given to XIDMPRECORD is tied to another entry";
    TRIM_TWICE = "ERR syntax error, MAXLEN and MINID options at the same time are not compatible";
    XTRIM_WITHOUT_STRATEGY = "ERR syntax error, XTRIM must be called with a trimming strategy";
    TRIM_MAXLEN_NEGATIVE = "ERR The MAXLEN argument must be >= 0.";
    TRIM_LIMIT_NEGATIVE = "ERR The LIMIT argument must be >= 0.";
    TRIM_LIMIT_ALONE = "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy";
    TRIM_LIMIT_EXACT = "ERR syntax error, LIMIT cannot be used without the special ~ option";
    TIMEOUT_NOT_INTEGER = "ERR timeout is not an integer or out of range";
    TIMEOUT_NEGATIVE = "ERR timeout is negative";
    TIMEOUT_RANGE = "ERR timeout is out of range";
    XREAD_UNBALANCED = "ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified.";
    XREADGROUP_UNBALANCED = "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified.";
    XREAD_GROUP = "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.";
    XREAD_NOACK = "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.";
    XREAD_NEW = "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.";
    XREADGROUP_MISSING_GROUP = "ERR Missing GROUP option for XREADGROUP";
    XREADGROUP_DOLLAR = "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.";
    XREADGROUP_PLUS = "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just return an empty result set.";
    MAXCOUNT = "ERR MAXCOUNT must be a positive integer";
    MAXSIZE = "ERR MAXSIZE must be a positive integer";
    MAXCOUNT_BELOW_COUNT = "ERR MAXCOUNT must not be smaller than COUNT";
    CLAIM_NOT_INTEGER = "ERR min-idle-time is not an integer";
    CLAIM_NEGATIVE = "ERR min-idle-time must be a positive integer";
    XGROUP_NO_KEY = "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.";
    XGROUP_ENTRIES_READ = "ERR value for ENTRIESREAD must be positive or -1";
    XGROUP_MAXPENDING = "ERR value for MAXPENDING must be 0 or more";
    XGROUP_NOT_EMPTY = "ERR the consumer has pending entries";
    BUSY_GROUP = "BUSYGROUP Consumer Group name already exists";
    AUTOCLAIM_COUNT = "ERR COUNT must be > 0";
    IDS_NOT_POSITIVE = "ERR Number of IDs must be a positive integer";
    XACK_RANGE = "ERR RANGE takes two IDs: the first and the last to acknowledge";
    IDS_MISMATCH = "ERR The `numids` parameter must match the number of arguments";
    XNACK_MODE = "ERR mode must be SILENT, FAIL, or FATAL";
    XNACK_NUMIDS = "ERR numids must be a positive integer";
    XNACK_MISMATCH = "ERR number of IDs doesn't match numids";
    XNACK_RETRYCOUNT = "ERR Invalid RETRYCOUNT value, must be >= 0";
    XNACK_DELAY = "ERR DELAY must be a number of milliseconds, 0 or more";
    XSETID_ADDED_NEGATIVE = "ERR entries_added must be positive";
    XSETID_BELOW_GIVEN_DELETED = "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id";
    XSETID_BELOW_DELETED = "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id";
    XSETID_BELOW_TOP = "ERR The ID specified in XSETID is smaller than the target stream top item";
    XSETID_ADDED_BELOW_LENGTH = "ERR The entries_added specified in XSETID is smaller than the target stream length";
    OVERFLOW = "ERR increment or decrement would overflow";
    DECREMENT_OVERFLOW = "ERR decrement would overflow";
    NAN_OR_INFINITY = "ERR increment would produce NaN or Infinity";
    STRING_TOO_LONG = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    OFFSET_RANGE = "ERR offset is out of range";
    SAME_OBJECT = "ERR source and destination objects are the same";
    DB_RANGE = "ERR DB index is out of range";
    DB_INVALID_FIRST = "ERR invalid first DB index";
    DB_INVALID_SECOND = "ERR invalid second DB index";
    INVALID_CURSOR = "ERR invalid cursor";
    EXPIRE_NX_WITH_OTHERS = "ERR NX and XX, GT or LT options at the same time are not compatible";
    EXPIRE_GT_AND_LT = "ERR GT and LT options at the same time are not compatible";
    NESTED_MULTI = "ERR MULTI calls can not be nested";
    EXEC_WITHOUT_MULTI = "ERR EXEC without MULTI";
    DISCARD_WITHOUT_MULTI = "ERR DISCARD without MULTI";
    WATCH_IN_MULTI = "ERR WATCH inside MULTI is not allowed";
    EXEC_ABORT = "EXECABORT Transaction discarded because of previous errors.";
    NO_AUTH = "NOAUTH Authentication required.";
    WRONG_PASS = "WRONGPASS invalid username-password pair or user is disabled.";
    AUTH_WITHOUT_PASSWORD = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?";
    USER_NAME = "ERR Usernames can't contain spaces or null characters";
    DEFAULT_USER_STAYS = "ERR The 'default' user cannot be removed";
    GENPASS_BITS = "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096";
    NO_PERMISSION_KEY = "NOPERM No permissions to access a key";
    NO_PERMISSION_CHANNEL = "NOPERM No permissions to access a channel";
    NO_ACL_FILE = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration.";
    NO_PROTO = "NOPROTO unsupported protocol version";
    HELLO_VERSION = "ERR Protocol version is not an integer or out of range";
    HELLO_NO_AUTH = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time";
    CLIENT_NAME = "ERR Client names cannot contain spaces, newlines or special characters.";
    UNBLOCKED = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
    UNBLOCK_REASON = "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR";
    NO_SUCH_CLIENT = "ERR No such client";
    CLUSTER_DISABLED = "ERR This instance has cluster support disabled";
    CLIENT_ID = "ERR Invalid client ID";
    CLIENT_ID_RANGE = "ERR client-id should be greater than 0";
    MAX_AGE_NOT_INTEGER = "ERR maxage is not an integer or out of range";
    MAX_AGE_RANGE = "ERR maxage should be greater than 0";
    PAUSE_MODE = "ERR CLIENT PAUSE mode must be WRITE or ALL";
    NO_SHUTDOWN = "ERR No shutdown in progress.";
    LOCAL_RANGE = "ERR value is out of range, value must between 0 and 1";
    REPLICAS_RANGE = "ERR value is out of range, must be positive";
    WAITAOF_WITHOUT_LOG = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";
    DEBUG_NOT_ALLOWED = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.";
    SLOWLOG_COUNT = "ERR count should be greater than or equal to -1";
    NO_REPLICATION = "ERR this server cannot follow another one: replication is not supported";
    NO_LFU = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.";
    NOT_BUSY = "NOTBUSY No scripts in execution right now.";
    NO_SCRIPT = "NOSCRIPT No matching script. Please use EVAL.";
    NUMKEYS_TOO_LARGE = "ERR Number of keys can't be greater than number of args";
    NUMKEYS_NEGATIVE = "ERR Number of keys can't be negative";
    SCRIPT_FLUSH_OPTION = "ERR SCRIPT FLUSH only support SYNC|ASYNC option";
    SCRIPTS_FULL = "ERR too many bytes of scripts are kept: SCRIPT FLUSH makes room";
    SCRIPT_NO_ARGUMENTS = "ERR Please specify at least one argument for this redis lib call";
    SCRIPT_ARGUMENTS = "ERR Lua redis lib command arguments must be strings or integers";
    SCRIPT_ARGUMENTS_SIZE = "ERR the arguments are larger than client-query-buffer-limit";
    SCRIPT_RECORDS_SIZE = "ERR the script has written more than fits into one commit of the log";
    SCRIPT_UNKNOWN = "ERR Unknown Redis command called from script";
    SCRIPT_ARITY = "ERR Wrong number of args calling Redis command from script";
    SCRIPT_NOT_ALLOWED = "ERR This Redis command is not allowed from script";
    SCRIPT_READ_ONLY = "ERR Write commands are not allowed from read-only scripts.";
    SCRIPT_WRITES = "ERR Can not execute a script with write flag using *_ro command.";
    SCRIPT_FIRST_LINE = "ERR Invalid script shebang";
    BGSAVE_RUNNING = "ERR Background save already in progress";
}
