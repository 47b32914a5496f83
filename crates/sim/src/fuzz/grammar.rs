//! Commands from a fuzzer's bytes: a form of the table below with its places filled in, then perhaps changed in a way that no
//! client would think of.

use arbitrary::Unstructured;
use impel_core::command::table;

use crate::workload::START_MS;

/// Forms of commands. Words of one capital letter are places: K a key, G a group, C a consumer, I an ID, R an end of a range,
/// N a number, J the name of some work, T a time in ms, A a point in time, F a field, V a value, P a pattern, W any word.
const FORMS: &[&str] = &[
    "XADD K * F V",
    "XADD K * F V",
    "XADD K * F V F V",
    "XADD K I F V",
    "XADD K I F V",
    "XADD K NOMKSTREAM MAXLEN ~ N * F V",
    "XADD K MAXLEN = N LIMIT N * F V",
    "XADD K MAXLEN N ACKED * F V",
    "XADD K MINID ~ I DELREF * F V",
    "XADD K DELAY T * F V",
    "XADD K NOTBEFORE A * F V",
    "XADD K IDMP W W * F V",
    "XADD K IDMPAUTO W * F V",
    "XADDM K COUNT 2 * 1 F V * 2 F V F V",
    "XADDM K MAXLEN ~ N COUNT 1 I 1 F V",
    "XLEN K",
    "XDEL K I I",
    "XDELEX K ACKED IDS N I I",
    "XDELEX K DELREF IDS 2 I I",
    "XACKDEL K G DELREF IDS 1 I",
    "XTRIM K MAXLEN N",
    "XTRIM K MAXLEN ~ N LIMIT N",
    "XTRIM K MINID I DELREF",
    "XTRIM K MAXLEN = N ACKED",
    "XRANGE K R R COUNT N",
    "XRANGE K - +",
    "XREVRANGE K R R",
    "XSETID K I ENTRIESADDED N MAXDELETEDID I",
    "XGROUP CREATE K G I MKSTREAM",
    "XGROUP CREATE K G 0 MKSTREAM",
    "XGROUP CREATE K G $ ENTRIESREAD N",
    "XGROUP CREATE K G 0 MKSTREAM MAXPENDING N KEYFIELD f",
    "XGROUP CFGSET K G MAXPENDING N MAXPENDING-CONSUMER N",
    "XGROUP CFGSET K G KEYFIELD F",
    "XGROUP SETID K G I ENTRIESREAD N",
    "XGROUP DESTROY K G",
    "XGROUP CREATECONSUMER K G C",
    "XGROUP DELCONSUMER K G C",
    "XGROUP DELCONSUMER K G C IFEMPTY",
    "XGROUP DELCONSUMER K G C RELEASE",
    "XREAD COUNT N STREAMS K I",
    "XREAD BLOCK T STREAMS K K $ I",
    "XREAD MAXCOUNT N MAXSIZE N STREAMS K K 0 +",
    "XREADGROUP GROUP G C STREAMS K >",
    "XREADGROUP GROUP G C COUNT N STREAMS K >",
    "XREADGROUP GROUP G C COUNT N NOACK STREAMS K K > I",
    "XREADGROUP GROUP G C BLOCK T STREAMS K >",
    "XREADGROUP GROUP G C COUNT N CLAIM T STREAMS K K > >",
    "XREADGROUP GROUP G C MKGROUP 0 BLOCK T STREAMS K >",
    "XREADGROUP GROUP G C STREAMS K 0",
    "XACK K G I I I",
    "XACK K G RANGE R R",
    "XNACK K G FAIL IDS 2 I I",
    "XNACK K G SILENT IDS 1 I DELAY T",
    "XNACK K G FATAL IDS 1 I RETRYCOUNT N FORCE",
    "XCLAIM K G C T I I",
    "XCLAIM K G C 0 I I IDLE T RETRYCOUNT N FORCE",
    "XCLAIM K G C 0 I TIME A LASTID I JUSTID",
    "XAUTOCLAIM K G C T I COUNT N JUSTID",
    "XAUTOCLAIM K G C 0 0 COUNT N",
    "XPENDING K G",
    "XPENDING K G IDLE T R R N C",
    "XPENDING K G - + N",
    "XINFO STREAM K",
    "XINFO STREAM K FULL COUNT N",
    "XINFO GROUPS K",
    "XINFO CONSUMERS K G",
    "XINFO GROUPSTATS K",
    "XCFGSET K MAXLEN N MAXBYTES N MAXAGE T",
    "XCFGSET K RETAIN acked",
    "XCFGSET K MAXLEN N DISCARD new",
    "XCFGSET K IDMP-DURATION N IDMP-MAXSIZE N",
    "XCFGGET K",
    "XIDMPRECORD K W W I",
    "XWORK BEGIN K G C I",
    "XWORK BEGIN K G C I",
    "XWORK BEGIN K G C I WORK J DELIVERY N",
    "XWORK DONE K G C I",
    "XWORK DONE K G C I WORK J DIGEST V RECEIPT W DELIVERY N",
    "XWORK DONE K G C I DIGEST V EMIT K * F V",
    "XWORK DONE K G C I WORK J EMIT K I F V F V",
    "XWORK FAIL K G C I",
    "XWORK FAIL K G C I REASON W DELIVERY N RETRYIN T",
    "XWORK FAIL K G C I REASON W DEAD",
    "XWORK HOLD K G REASON W IDS 2 I I",
    "XWORK RELEASE K G IDS 2 I I",
    "XWORK GET K G J",
    "XWORK LOG K G R R COUNT N",
    "XWORK LOG K G - + WORK J ENTRY I OUTCOME completed",
    "XWORK AUDIT K G R R COUNT N",
    "XWORK AUDIT K G SUMMARY",
    "XWORK POLICY K G",
    "XWORK POLICY K G EVIDENCE record WORKFIELD F",
    "XWORK POLICY K G EVIDENCE require IDEMPOTENT yes",
    "XWORK POLICY K G EVIDENCE off WORKFIELD F IDEMPOTENT no",
    "XWORK POLICY K G LEASE T",
    "XWORK POLICY K G MAXDELIVERIES N DEADLETTER K",
    "XWORK POLICY K G LEASE 5 BACKOFF T T CONSUMERTTL T",
    "XWORK POLICY K G LEDGERAGE T LEDGERLEN N",
    "XWORK REDRIVE K",
    "XWORK REDRIVE K COUNT N PERSEC N",
    "SET K V",
    "SET K V PX T KEEPTTL GET",
    "SET K V NX EXAT A",
    "GET K",
    "GETEX K PXAT A",
    "GETDEL K",
    "APPEND K V",
    "SETRANGE K N V",
    "GETRANGE K N N",
    "STRLEN K",
    "INCR K",
    "INCRBY K N",
    "INCRBYFLOAT K N",
    "MSET K V K V",
    "MGET K K K",
    "DEL K K",
    "UNLINK K",
    "EXISTS K K",
    "TYPE K",
    "RENAME K K",
    "RENAMENX K K",
    "COPY K K REPLACE",
    "COPY K K DB N",
    "MOVE K N",
    "PEXPIRE K T GT",
    "PEXPIREAT K A",
    "EXPIRE K N",
    "PERSIST K",
    "PTTL K",
    "KEYS P",
    "SCAN N MATCH P COUNT N TYPE stream",
    "RANDOMKEY",
    "DBSIZE",
    "SELECT N",
    "SWAPDB N N",
    "FLUSHDB",
    "FLUSHALL ASYNC",
    "OBJECT FREQ K",
    "MEMORY USAGE K SAMPLES N",
    "MULTI",
    "EXEC",
    "EXEC",
    "DISCARD",
    "WATCH K K",
    "UNWATCH",
    "SUBSCRIBE W W",
    "PSUBSCRIBE P",
    "UNSUBSCRIBE W",
    "PUNSUBSCRIBE",
    "PUBLISH W V",
    "PUBSUB CHANNELS P",
    "HELLO N",
    "HELLO 3 SETNAME W",
    "PING W",
    "ECHO V",
    "RESET",
    "QUIT",
    "CLIENT ID",
    "CLIENT LIST",
    "CLIENT KILL ID N",
    "CLIENT UNBLOCK N ERROR",
    "CLIENT PAUSE T WRITE",
    "CLIENT UNPAUSE",
    "CLIENT SETNAME W",
    "CLIENT REPLY SKIP",
    "CLIENT NO-TOUCH ON",
    "ACL SETUSER W on >W ~P +@all -W",
    "ACL SETUSER W (~P +W)",
    "ACL GETUSER W",
    "ACL DELUSER W",
    "ACL LIST",
    "ACL DRYRUN W W W",
    "AUTH W W",
    "CONFIG GET P",
    "CONFIG SET stream-lag compat",
    "CONFIG SET notify-keyspace-events KEA",
    "CONFIG SET maxmemory N",
    "CONFIG RESETSTAT",
    "COMMAND DOCS W",
    "COMMAND GETKEYS XREAD STREAMS K I",
    "INFO W",
    "SLOWLOG GET N",
    "LATENCY HISTOGRAM W",
    "DEBUG DIGEST",
    "BGSAVE",
    "LASTSAVE",
    "TIME",
    "WAIT 0 T",
    "WAITAOF 1 0 T",
];

/// Words that make trouble, if anything does.
const UGLY: &[&str] = &[
    "",
    "0",
    "-1",
    "1",
    "-0",
    "+1",
    "01",
    " 1",
    "1 ",
    "0x10",
    "1e3",
    "nan",
    "inf",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "2147483648",
    "4294967296",
    "18446744073709551615-18446744073709551615",
    "18446744073709551615-0",
    "0-18446744073709551615",
    "0-0",
    "0-1",
    "1-",
    "-1-1",
    "5-*",
    "*",
    "$",
    ">",
    "+",
    "-",
    "(",
    "(0-0",
    "(18446744073709551615-18446744073709551615",
    "~",
    "=",
    "IDS",
    "STREAMS",
    "COUNT",
    "BLOCK",
    "\r\n",
    "\0",
    "[",
    "[a-",
    "\\",
    "*?*?*?*?",
    "GROUP",
    "MAXLEN",
    "LIMIT",
    "FORCE",
    "DELREF",
    "NOACK",
    "CLAIM",
    "JUSTID",
    "WORK",
    "EMIT",
    "DEAD",
    "RETRYIN",
    "SUMMARY",
    "@all",
    "allkeys",
    "%R~*",
];

/// A command of somebody at that time.
pub fn command(input: &mut Unstructured<'_>, now_ms: u64) -> arbitrary::Result<Vec<Vec<u8>>> {
    let mut words = match input.arbitrary::<u8>()? {
        // One of the table, with words at random behind its name.
        0..10 => {
            let count = table::all_with_subcommands().count();
            let at = input.choose_index(count)?;
            let spec = table::all_with_subcommands().nth(at).expect("there are so many");
            let mut words: Vec<Vec<u8>> = spec.name.split('|').map(|word| word.as_bytes().to_vec()).collect();
            for _ in 0..input.int_in_range(0..=5)? {
                words.push(word(input, "W", now_ms)?);
            }
            words
        }
        _ => {
            let form = input.choose(FORMS)?;
            form.split(' ').map(|place| word(input, place, now_ms)).collect::<arbitrary::Result<_>>()?
        }
    };
    match input.arbitrary::<u8>()? {
        0..200 => {}
        200..215 => {
            let at = input.choose_index(words.len())?;
            words[at] = word(input, "W", now_ms)?;
        }
        215..225 => {
            let at = input.choose_index(words.len())?;
            words.remove(at);
        }
        225..235 => {
            let at = input.choose_index(words.len())?;
            words.insert(at, words[at].clone());
        }
        235..245 => {
            let (a, b) = (input.choose_index(words.len())?, input.choose_index(words.len())?);
            words.swap(a, b);
        }
        245..250 => {
            let at = input.choose_index(words.len())?;
            words.truncate(at + 1);
        }
        _ => {
            let more = words[words.len() / 2..].to_vec();
            words.extend(more);
        }
    }
    if words.is_empty() {
        words.push(b"PING".to_vec());
    }
    Ok(words)
}

fn word(input: &mut Unstructured<'_>, place: &str, now_ms: u64) -> arbitrary::Result<Vec<u8>> {
    let pick = |input: &mut Unstructured<'_>, from: &[&str]| input.choose(from).map(|word| word.as_bytes().to_vec());
    Ok(match place {
        "K" => pick(input, &["s", "s", "s", "t", "u", "v", "text", "gone"])?,
        "G" => pick(input, &["g", "g", "g", "h", "no"])?,
        "C" => pick(input, &["a", "a", "b", "c"])?,
        "F" => pick(input, &["f", "f", "g", "h", ""])?,
        "P" => pick(input, &["*", "s*", "?", "[a-t]", "x*y", "news*"])?,
        "V" => match input.arbitrary::<u8>()? {
            0..200 => pick(input, &["1", "2", "x", "", "a longer value", "10"])?,
            byte => vec![byte; usize::from(byte - 200) * 5],
        },
        "N" => match input.arbitrary::<u8>()? {
            0..220 => pick(input, &["0", "1", "2", "3", "4", "5", "8", "10", "100", "-1"])?,
            _ => pick(input, UGLY)?,
        },
        "T" => pick(input, &["0", "1", "2", "5", "10", "50", "100", "1000", "100000", "-1", "9223372036854775807"])?,
        "J" => match input.arbitrary::<u8>()? {
            0..200 => pick(input, &["j", "j", "k", "1", "2"])?,
            _ => id(input, now_ms)?,
        },
        "A" => (now_ms - 20 + u64::from(input.arbitrary::<u8>()?) / 2).to_string().into_bytes(),
        "I" => id(input, now_ms)?,
        "R" => match input.arbitrary::<u8>()? {
            0..60 => b"-".to_vec(),
            60..120 => b"+".to_vec(),
            120..150 => [b"(".to_vec(), id(input, now_ms)?].concat(),
            _ => id(input, now_ms)?,
        },
        "W" => match input.arbitrary::<u8>()? {
            0..120 => pick(input, UGLY)?,
            120..160 => pick(input, &["s", "g", "a", "f", "news", "default", "get", "xadd", "stream"])?,
            160..200 => id(input, now_ms)?,
            200..210 => (0..=255).collect(),
            210..215 => vec![b'k'; 3000],
            _ => {
                let n = input.int_in_range(0..=12)?;
                input.bytes(n)?.to_vec()
            }
        },
        plain => plain.as_bytes().to_vec(),
    })
}

/// An ID that may well be there: small ones, and those that `*` makes.
fn id(input: &mut Unstructured<'_>, now_ms: u64) -> arbitrary::Result<Vec<u8>> {
    let byte: u8 = input.arbitrary()?;
    let (ms, seq) = (u64::from(byte >> 2), u64::from(byte & 3));
    Ok(match byte {
        0..48 => format!("{ms}-{seq}"),
        48..64 => "*".into(),
        64..72 => "0".into(),
        72..80 => UGLY[20 + usize::from(byte & 7)].into(),
        80..160 => format!("{}-{seq}", now_ms.saturating_sub(ms - 20)),
        _ => format!("{}-{}", START_MS + ms - 40, byte & 1),
    }
    .into_bytes())
}
