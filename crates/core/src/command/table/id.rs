//! What the engine dispatches by: one variant per command or subcommand that can be executed. No meaning
//! beyond the name; the numbers are not stored anywhere and may change.

/// Identity of a command.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u16)]
pub enum CommandId {
    /// Not executable: the row of a container, which its arity or its subcommands answer for.
    Container,
    /// XACK
    XAck,
    /// XACKDEL
    XAckDel,
    /// XADD
    XAdd,
    /// XAUTOCLAIM
    XAutoClaim,
    /// XADDM
    XAddM,
    /// XCFGGET
    XCfgGet,
    /// XCFGSET
    XCfgSet,
    /// XCLAIM
    XClaim,
    /// XDEL
    XDel,
    /// XDELEX
    XDelEx,
    /// XGROUP CFGSET
    XGroupCfgSet,
    /// XGROUP CREATE
    XGroupCreate,
    /// XGROUP CREATECONSUMER
    XGroupCreateConsumer,
    /// XGROUP DELCONSUMER
    XGroupDelConsumer,
    /// XGROUP DESTROY
    XGroupDestroy,
    /// XGROUP SETID
    XGroupSetId,
    /// XGROUP HELP
    XGroupHelp,
    /// XIDMPRECORD
    XIdmpRecord,
    /// XINFO STREAM
    XInfoStream,
    /// XINFO GROUPSTATS
    XInfoGroupStats,
    /// XINFO GROUPS
    XInfoGroups,
    /// XINFO CONSUMERS
    XInfoConsumers,
    /// XINFO HELP
    XInfoHelp,
    /// XLEN
    XLen,
    /// XNACK
    XNack,
    /// XPENDING
    XPending,
    /// XRANGE
    XRange,
    /// XREAD
    XRead,
    /// XREADGROUP
    XReadGroup,
    /// XREVRANGE
    XRevRange,
    /// XSETID
    XSetId,
    /// XTRIM
    XTrim,
    /// XWORK AUDIT
    XWorkAudit,
    /// XWORK BEGIN
    XWorkBegin,
    /// XWORK DONE
    XWorkDone,
    /// XWORK FAIL
    XWorkFail,
    /// XWORK GET
    XWorkGet,
    /// XWORK HELP
    XWorkHelp,
    /// XWORK HOLD
    XWorkHold,
    /// XWORK LOG
    XWorkLog,
    /// XWORK POLICY
    XWorkPolicy,
    /// XWORK REDRIVE
    XWorkRedrive,
    /// XWORK RELEASE
    XWorkRelease,
    /// APPEND
    Append,
    /// DECR
    Decr,
    /// DECRBY
    DecrBy,
    /// GET
    Get,
    /// GETDEL
    GetDel,
    /// GETEX
    GetEx,
    /// GETRANGE
    GetRange,
    /// GETSET
    GetSet,
    /// INCR
    Incr,
    /// INCRBY
    IncrBy,
    /// INCRBYFLOAT
    IncrByFloat,
    /// MGET
    MGet,
    /// MSET
    MSet,
    /// MSETNX
    MSetNx,
    /// PSETEX
    PSetEx,
    /// SET
    Set,
    /// SETEX
    SetEx,
    /// SETNX
    SetNx,
    /// SETRANGE
    SetRange,
    /// STRLEN
    StrLen,
    /// SUBSTR
    Substr,
    /// COPY
    Copy,
    /// DEL
    Del,
    /// EXISTS
    Exists,
    /// EXPIRE
    Expire,
    /// EXPIREAT
    ExpireAt,
    /// EXPIRETIME
    ExpireTime,
    /// KEYS
    Keys,
    /// MOVE
    Move,
    /// OBJECT ENCODING
    ObjectEncoding,
    /// OBJECT REFCOUNT
    ObjectRefCount,
    /// OBJECT IDLETIME
    ObjectIdleTime,
    /// OBJECT FREQ
    ObjectFreq,
    /// OBJECT HELP
    ObjectHelp,
    /// PERSIST
    Persist,
    /// PEXPIRE
    PExpire,
    /// PEXPIREAT
    PExpireAt,
    /// PEXPIRETIME
    PExpireTime,
    /// PTTL
    PTtl,
    /// RANDOMKEY
    RandomKey,
    /// RENAME
    Rename,
    /// RENAMENX
    RenameNx,
    /// SCAN
    Scan,
    /// TOUCH
    Touch,
    /// TTL
    Ttl,
    /// TYPE
    Type,
    /// UNLINK
    Unlink,
    /// WAIT
    Wait,
    /// WAITAOF
    WaitAof,
    /// DISCARD
    Discard,
    /// EXEC
    Exec,
    /// MULTI
    Multi,
    /// UNWATCH
    Unwatch,
    /// WATCH
    Watch,
    /// EVAL
    Eval,
    /// EVAL_RO
    EvalRo,
    /// EVALSHA
    EvalSha,
    /// EVALSHA_RO
    EvalShaRo,
    /// SCRIPT EXISTS
    ScriptExists,
    /// SCRIPT FLUSH
    ScriptFlush,
    /// SCRIPT KILL
    ScriptKill,
    /// SCRIPT LOAD
    ScriptLoad,
    /// SCRIPT HELP
    ScriptHelp,
    /// AUTH
    Auth,
    /// CLIENT ID
    ClientId,
    /// CLIENT INFO
    ClientInfo,
    /// CLIENT LIST
    ClientList,
    /// CLIENT SETNAME
    ClientSetName,
    /// CLIENT GETNAME
    ClientGetName,
    /// CLIENT SETINFO
    ClientSetInfo,
    /// CLIENT KILL
    ClientKill,
    /// CLIENT UNBLOCK
    ClientUnblock,
    /// CLIENT REPLY
    ClientReply,
    /// CLIENT NO-EVICT
    ClientNoEvict,
    /// CLIENT NO-TOUCH
    ClientNoTouch,
    /// CLIENT PAUSE
    ClientPause,
    /// CLIENT UNPAUSE
    ClientUnpause,
    /// CLIENT HELP
    ClientHelp,
    /// ECHO
    Echo,
    /// HELLO
    Hello,
    /// PING
    Ping,
    /// QUIT
    Quit,
    /// RESET
    Reset,
    /// SELECT
    Select,
    /// ACL CAT
    AclCat,
    /// ACL DELUSER
    AclDelUser,
    /// ACL DRYRUN
    AclDryRun,
    /// ACL GENPASS
    AclGenPass,
    /// ACL GETUSER
    AclGetUser,
    /// ACL HELP
    AclHelp,
    /// ACL LIST
    AclList,
    /// ACL LOAD
    AclLoad,
    /// ACL LOG
    AclLog,
    /// ACL SAVE
    AclSave,
    /// ACL SETUSER
    AclSetUser,
    /// ACL USERS
    AclUsers,
    /// ACL WHOAMI
    AclWhoAmI,
    /// ASKING
    Asking,
    /// BGREWRITEAOF
    BgRewriteAof,
    /// BGSAVE
    BgSave,
    /// CLUSTER INFO
    ClusterInfo,
    /// CLUSTER MYID
    ClusterMyId,
    /// CLUSTER NODES
    ClusterNodes,
    /// CLUSTER SLOTS
    ClusterSlots,
    /// CLUSTER SHARDS
    ClusterShards,
    /// CLUSTER KEYSLOT
    ClusterKeySlot,
    /// CLUSTER COUNTKEYSINSLOT
    ClusterCountKeysInSlot,
    /// CLUSTER GETKEYSINSLOT
    ClusterGetKeysInSlot,
    /// CLUSTER HELP
    ClusterHelp,
    /// COMMAND
    Command,
    /// COMMAND COUNT
    CommandCount,
    /// COMMAND DOCS
    CommandDocs,
    /// COMMAND INFO
    CommandInfo,
    /// COMMAND GETKEYS
    CommandGetKeys,
    /// COMMAND GETKEYSANDFLAGS
    CommandGetKeysAndFlags,
    /// COMMAND LIST
    CommandList,
    /// COMMAND HELP
    CommandHelp,
    /// CONFIG GET
    ConfigGet,
    /// CONFIG SET
    ConfigSet,
    /// CONFIG RESETSTAT
    ConfigResetStat,
    /// CONFIG REWRITE
    ConfigRewrite,
    /// CONFIG HELP
    ConfigHelp,
    /// DBSIZE
    DbSize,
    /// DEBUG
    Debug,
    /// FLUSHALL
    FlushAll,
    /// FLUSHDB
    FlushDb,
    /// INFO
    Info,
    /// LASTSAVE
    LastSave,
    /// LATENCY LATEST
    LatencyLatest,
    /// LATENCY HISTORY
    LatencyHistory,
    /// LATENCY RESET
    LatencyReset,
    /// LATENCY DOCTOR
    LatencyDoctor,
    /// LATENCY GRAPH
    LatencyGraph,
    /// LATENCY HISTOGRAM
    LatencyHistogram,
    /// LATENCY HELP
    LatencyHelp,
    /// MEMORY USAGE
    MemoryUsage,
    /// MEMORY STATS
    MemoryStats,
    /// MEMORY DOCTOR
    MemoryDoctor,
    /// MEMORY PURGE
    MemoryPurge,
    /// MEMORY HELP
    MemoryHelp,
    /// PSUBSCRIBE
    PSubscribe,
    /// PUBLISH
    Publish,
    /// PUBSUB CHANNELS
    PubSubChannels,
    /// PUBSUB NUMPAT
    PubSubNumPat,
    /// PUBSUB NUMSUB
    PubSubNumSub,
    /// PUBSUB SHARDCHANNELS
    PubSubShardChannels,
    /// PUBSUB SHARDNUMSUB
    PubSubShardNumSub,
    /// PUBSUB HELP
    PubSubHelp,
    /// PUNSUBSCRIBE
    PUnsubscribe,
    /// SPUBLISH
    SPublish,
    /// SSUBSCRIBE
    SSubscribe,
    /// SUBSCRIBE
    Subscribe,
    /// SUNSUBSCRIBE
    SUnsubscribe,
    /// UNSUBSCRIBE
    Unsubscribe,
    /// READONLY
    ReadOnly,
    /// READWRITE
    ReadWrite,
    /// REPLICAOF
    ReplicaOf,
    /// ROLE
    Role,
    /// SAVE
    Save,
    /// SHUTDOWN
    Shutdown,
    /// SLOWLOG GET
    SlowLogGet,
    /// SLOWLOG LEN
    SlowLogLen,
    /// SLOWLOG RESET
    SlowLogReset,
    /// SLOWLOG HELP
    SlowLogHelp,
    /// SWAPDB
    SwapDb,
    /// TIME
    Time,
}
