//! Scripts: what they see, what they leave, and where they are stopped. The replies are those of Redis 8.2.3 unless a test
//! says otherwise.

use std::cell::Cell;

use super::*;

fn eval(script: &str) -> String {
    format!("EVAL \"{script}\" 0")
}

#[test]
fn values_go_both_ways() {
    let mut world = World::new();
    let cases = [
        ("return 3.99", ":3|"),
        ("return 1e20", ":-9223372036854775808|"),
        ("return 'a'", "$1|a|"),
        ("return true", ":1|"),
        ("return false", "$-1|"),
        ("return nil", "$-1|"),
        ("return {1,{2,'x'},nil,4}", "*2|:1|*2|:2|$1|x|"),
        ("return {ok='fine'}", "+fine|"),
        ("return {err='MY x'}", "-MY x|"),
        ("return {double=1}", "$1|1|"),
        ("return redis.call('get','nokey') == false", ":1|"),
        ("return redis.call('set','a',-0.0)", "+OK|"),
        ("return redis.call('get','a')", "$1|0|"),
        ("redis.call('set','a',1e20) return redis.call('get','a')", "$5|1e+20|"),
        ("redis.call('set','a',12345678901234567890) return redis.call('get','a')", "$20|12345678901234567000|"),
        ("redis.call('set','a',0.1) return redis.call('get','a')", "$3|0.1|"),
        ("return redis.sha1hex('')", "$40|da39a3ee5e6b4b0d3255bfef95601890afd80709|"),
        ("return redis.error_reply('abc')", "-ERR abc|"),
        ("return redis.error_reply('-abc def')", "-abc def|"),
        ("return {math.random(1000),math.random(1000),math.random(1,10)}", "*3|:397|:841|:4|"),
    ];
    for (script, reply) in cases {
        assert_eq!(world.say(&eval(script)), reply, "{script}");
    }
    assert_eq!(world.say("EVAL \"return {KEYS[1],ARGV[1],#KEYS,#ARGV}\" 1 k x y"), "*4|$1|k|$1|x|:1|:2|");
    world.say("HELLO 3");
    assert_eq!(world.say(&eval("return {true,false}")), "*2|:1|_|");
    assert_eq!(world.say(&eval("redis.setresp(3) return {true,false,{map={a=1}}}")), "*3|#t|#f|%1|$1|a|:1|");
    assert_eq!(world.say(&eval("return redis.call('get','nokey')")), "_|");
}

#[test]
fn errors_say_where() {
    let mut world = World::new();
    world.say("SET str abc");
    let cases = [
        ("error('boom')", "ERR user_script:1: boom"),
        ("error({err='My Err'})", "My Err"),
        ("error({})", "ERR unknown error"),
        ("return foo", "ERR user_script:1: Script attempted to access nonexistent global variable 'foo'"),
        ("x=1", "ERR user_script:1: Attempt to modify a readonly table"),
        ("return redis.call()", "ERR Please specify at least one argument for this redis lib call"),
        ("return redis.call('nosuch')", "ERR Unknown Redis command called from script"),
        ("return redis.call('get')", "ERR Wrong number of args calling Redis command from script"),
        ("return redis.call('get',{})", "ERR Lua redis lib command arguments must be strings or integers"),
        ("return redis.call('multi')", "ERR This Redis command is not allowed from script"),
        ("return redis.call('eval','return 1',0)", "ERR This Redis command is not allowed from script"),
        ("return redis.call('incr','str')", "ERR value is not an integer or out of range"),
    ];
    for (script, text) in cases {
        let sha = String::from_utf8(crate::engine::script::sha1(script.as_bytes()).to_vec()).unwrap();
        assert_eq!(world.say(&eval(script)), format!("-{text} script: {sha}, on @user_script:1.|"), "{script}");
    }
    world.talk(&[
        ("EVAL \"return redis.pcall('incr','str')\" 0", "-ERR value is not an integer or out of range|"),
        (
            "EVAL \"return {pcall(redis.call,'incr','str')}\" 0",
            "*2|$-1|$43|ERR value is not an integer or out of range|",
        ),
        (
            "EVAL \"return (\" 0",
            "-ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'|",
        ),
        ("EVAL \"return 1\" x", "-ERR value is not an integer or out of range|"),
        ("EVAL \"return 1\" -1", "-ERR Number of keys can't be negative|"),
        ("EVAL \"return 1\" 2 a", "-ERR Number of keys can't be greater than number of args|"),
    ]);
}

#[test]
fn nothing_is_left_behind() {
    let mut world = World::new();
    for script in [
        "rawset(_G,'x',1)",
        "rawset(string,'x',1)",
        "string.x=1",
        "redis.call=nil",
        "cjson.null=nil",
        "table.insert(string,1)",
        "table.sort(_G)",
        "setmetatable(_G,{})",
        "getmetatable('').__index=nil",
        "rawset(getmetatable(_G),'__index',nil)",
        "getmetatable(getmetatable('')).x=1",
        "KEYS=1",
        "loadstring('x=1')()",
        "math.randomseed(7) math.random() error('x')",
    ] {
        let reply = world.say(&eval(script));
        assert!(reply.starts_with("-ERR "), "{script}: {reply}");
    }
    world.talk(&[
        ("EVAL \"for k in pairs(_G) do if k=='x' then return 1 end end return 0\" 0", ":0|"),
        ("EVAL \"return math.random(1000)\" 0", ":397|"),
        ("EVAL \"KEYS[1]='a' return 1\" 0", ":1|"),
        ("EVAL \"return #KEYS\" 0", ":0|"),
        ("EVAL \"return ('x'):rep(3)\" 0", "$3|xxx|"),
        // What is selected, and the protocol, hold inside alone.
        ("EVAL \"redis.setresp(3) redis.call('select',1) return redis.call('set','k','v')\" 0", "+OK|"),
        ("GET k", "$-1|"),
        ("EVAL \"redis.call('select',1) return redis.call('get','k')\" 0", "$1|v|"),
    ]);
}

#[test]
fn scripts_are_kept_by_sha() {
    let mut world = World::new();
    let sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    world.talk(&[
        ("EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0", "-NOSCRIPT No matching script. Please use EVAL.|"),
        ("EVALSHA abc 0", "-NOSCRIPT No matching script. Please use EVAL.|"),
        ("SCRIPT LOAD \"return 1\"", &format!("$40|{sha}|")),
        ("EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0", ":1|"),
        ("EVALSHA_RO e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0", ":1|"),
        ("SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db x", "*2|:1|:0|"),
        ("SCRIPT KILL", "-NOTBUSY No scripts in execution right now.|"),
        ("SCRIPT FLUSH x", "-ERR SCRIPT FLUSH only support SYNC|ASYNC option|"),
    ]);
    // Those of EVAL are bounded in number; one that was loaded stays.
    for n in 0..crate::limits::SCRIPTS_OF_EVAL_MAX + 10 {
        world.say(&eval(&format!("return {n} + 1")));
    }
    assert_eq!(world.engine.scripts().unwrap().len(), crate::limits::SCRIPTS_OF_EVAL_MAX + 1);
    world.talk(&[
        ("EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0", ":1|"),
        ("SCRIPT FLUSH ASYNC", "+OK|"),
        ("SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "*1|:0|"),
    ]);
}

#[test]
fn reading_scripts_do_not_write() {
    let mut world = World::new();
    let refused = world.say("EVAL_RO \"return redis.call('set','a','1')\" 0");
    assert!(refused.starts_with("-ERR Write commands are not allowed from read-only scripts. script: "), "{refused}");
    let refused = world.say("EVAL_RO \"return redis.call('publish','a','1')\" 0");
    assert!(refused.starts_with("-ERR Write commands are not allowed from read-only scripts. script: "), "{refused}");
    world.talk(&[
        ("EVAL_RO \"return redis.call('get','a')\" 0", "$-1|"),
        (
            "EVAL \"#!lua flags=no-writes\\nreturn redis.pcall('set','a',1)\" 0",
            "-ERR Write commands are not allowed from read-only scripts.|",
        ),
        ("EVAL_RO \"#!lua\\nreturn 1\" 0", "-ERR Can not execute a script with write flag using *_ro command.|"),
        ("EVAL \"#!lua flags=bad\\nreturn 1\" 0", "-ERR Unexpected flag in script shebang: bad|"),
        ("EVAL \"#!lua x=1\\nreturn 1\" 0", "-ERR Unknown lua shebang option: x=1|"),
        ("EVAL \"#!python\\nreturn 1\" 0", "-ERR Unexpected engine in script shebang: #!python|"),
        ("EVAL \"#!lua\" 0", "-ERR Invalid script shebang|"),
    ]);
}

#[test]
fn memory_that_is_short() {
    let mut world = World::with(&[("maxmemory", "1")]);
    let oom = "-OOM command not allowed when used memory > 'maxmemory'.";
    world.talk(&[
        ("EVAL \"return redis.call('get','a')\" 0", "$-1|"),
        ("EVAL \"return redis.pcall('set','a','1')\" 0", &format!("{oom}|")),
        ("EVAL \"redis.call('del','a') return redis.call('set','a',1)\" 0", "+OK|"),
        ("EVAL \"#!lua\\nreturn 1\" 0", &format!("{oom}|")),
        ("EVAL \"#!lua flags=no-writes\\nreturn 1\" 0", ":1|"),
        ("EVAL \"#!lua flags=allow-oom\\nreturn redis.call('set','a',1)\" 0", "+OK|"),
    ]);
    // What takes memory only with an option is refused, and let through, like the others.
    let read = |key: &str| format!("redis.pcall('xreadgroup','group','g','c','mkgroup','streams','{key}','>')");
    world.talk(&[
        (&format!("EVAL \"return {}\" 0", read("b")), &format!("{oom}|")),
        (&format!("EVAL \"redis.call('xack','b','g','1-1') return {}\" 0", read("b")), "$-1|"),
        (&format!("EVAL \"#!lua flags=allow-oom\\nreturn {}\" 0", read("c")), "$-1|"),
        ("EXISTS b c", ":2|"),
        ("XREADGROUP GROUP g c MKGROUP STREAMS d >", &format!("{oom}|")),
    ]);
}

#[test]
fn a_reader_wakes_when_the_script_is_over() {
    let mut world = World::new();
    world.say("XGROUP CREATE q g $ MKSTREAM");
    let reader = world.open("10.0.0.2:1");
    assert_eq!(world.send(reader, "XREADGROUP GROUP g c BLOCK 0 STREAMS q >"), "");
    assert_eq!(
        world.say("EVAL \"redis.call('XADD','q','1-0','n','a') redis.call('XADD','q','2-0','n','b') return 2\" 1 q"),
        ":2|"
    );
    assert_eq!(world.read(reader), "*1|*2|$1|q|*2|*2|$3|1-0|*2|$1|n|$1|a|*2|$3|2-0|*2|$1|n|$1|b|");
    // Inside, nothing waits.
    assert_eq!(
        world.say("EVAL \"return redis.call('XREADGROUP','GROUP','g','c','BLOCK','0','STREAMS','q','>')\" 0"),
        "$-1|"
    );
}

#[test]
fn in_a_transaction() {
    let mut world = World::new();
    world.talk(&[
        ("WATCH a", "+OK|"),
        ("MULTI", "+OK|"),
        ("EVAL \"redis.call('select',3) return redis.call('set','a','5')\" 0", "+QUEUED|"),
        ("EVAL \"return redis.call('set','a','6')\" 0", "+QUEUED|"),
        ("GET a", "+QUEUED|"),
        ("EXEC", "*3|+OK|+OK|$1|6|"),
        ("WATCH a", "+OK|"),
        ("EVAL \"return redis.call('set','a','7')\" 0", "+OK|"),
        ("MULTI", "+OK|"),
        ("EXEC", "*-1|"),
    ]);
}

#[test]
fn errors_are_counted_once() {
    let mut world = World::new();
    world.say("SET str abc");
    world.say(&eval("return redis.call('incr','str')"));
    assert_eq!(world.engine.statistics.errors, 1);
    world.say(&eval("return redis.pcall('incr','str')"));
    assert_eq!(world.engine.statistics.errors, 2);
    world.say(&eval("error('x')"));
    assert_eq!(world.engine.statistics.errors, 3);
}

#[test]
fn time_is_bounded() {
    let mut world = World::with(&[("busy-reply-threshold", "100")]);
    let us = Cell::new(0);
    // A clock that goes on by a millisecond with each look.
    let clock = || {
        us.set(us.get() + 1000);
        us.get()
    };
    let mut run = |script: &str| {
        us.set(0);
        let line = format!("{}\r\n", eval(script));
        let facts = Facts {
            now_ms: START_MS,
            now_us: START_MS * 1000,
            used_memory: 1,
            elapsed_us: &clock,
            host: &world.process,
        };
        world.engine.feed(world.me, line.as_bytes(), &facts);
        (world.read(world.me), us.get() / 1000)
    };
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() end) end",
        "while true do redis.pcall('get','k') end",
        "local t={} for i=1,60 do t={t,t} end return t",
        "local t={} for i=1,60 do t={t,t} end return cjson.encode(t)",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
    ] {
        let (reply, took_ms) = run(script);
        assert!(reply.starts_with("-ERR the script ran longer than busy-reply-threshold allows"), "{script}: {reply}");
        assert!((100..200).contains(&took_ms), "{script}: {took_ms}");
    }
    // One that has changed something runs on for ten times as long; what it did stays.
    let (reply, took_ms) = run("redis.call('set','k','v') while true do end");
    assert!(reply.starts_with("-ERR the script ran longer"), "{reply}");
    assert!((1000..1100).contains(&took_ms), "{took_ms}");
    assert_eq!(world.say("GET k"), "$1|v|");
}

#[test]
fn memory_and_depth_are_bounded() {
    let mut world = World::with(&[("client-query-buffer-limit", "2mb")]);
    let cases = [
        ("local s='x' while true do s=s..s end", "not enough memory"),
        ("return string.rep('x',1e9)", "resulting string too large"),
        ("local s,t=string.rep('x',1e7),{} for i=1,1000 do t[i]=s end return t", "too large"),
        ("local s,t=string.rep('x',1e7),{} for i=1,1000 do t[i]=s end return cjson.encode(t)", "too large"),
        (
            "local s,t=string.rep('x',1e6),{} for i=1,7000 do t[i]=s end return redis.call('del',unpack(t))",
            "larger than",
        ),
        ("return string.gsub('x','x')", "ERR bad argument #3"),
        ("return unpack({},1,1e8)", "too many results to unpack"),
        ("return unpack({},-2147483648,2147483647)", "too many results to unpack"),
        ("return string.find('x',string.rep('a?',100000))", "pattern too long"),
        ("local function f() return f() + 1 end return f()", "stack overflow"),
        ("local t={} t[1]=t return cjson.encode(t)", "excessive nesting (1001)"),
        ("return cjson.decode(string.rep('[',5000))", "too many nested data structures (1001) at character 1001"),
        ("local t={} t[1]=t return t", "reached lua stack limit"),
        ("local function f() return coroutine.wrap(f)() end f()", "C stack overflow"),
    ];
    for (script, text) in cases {
        let reply = world.say(&eval(script));
        assert!(reply.contains(text), "{script}: {}", &reply[..reply.len().min(300)]);
        assert_eq!(world.say("PING"), "+PONG|");
    }
    assert_eq!(world.say(&eval("local function f() return pcall(f) end f() return 1")), ":1|");
    assert_eq!(world.say(&eval("local s=string.dump(function() end) return loadstring(s)")), "$-1|");
}

#[test]
fn json_and_bits() {
    let mut world = World::new();
    let cases = [
        (
            "return cjson.encode({1,{a='x/'},cjson.null,true,1.5,1e20,0.1})",
            "$39|[1,{\"a\":\"x\\/\"},null,true,1.5,1e+20,0.1]|",
        ),
        ("return cjson.encode({})", "$2|{}|"),
        ("return cjson.decode('[1,[null,2]]')[2][2]", ":2|"),
        ("return cjson.decode('[null]')[1] == cjson.null", ":1|"),
        (
            "return {bit.band(255,15),bit.bor(1,2),bit.bxor(5,1),bit.bnot(0),bit.lshift(1,31),bit.rshift(-1,28)}",
            "*6|:15|:3|:4|:-1|:-2147483648|:15|",
        ),
        (
            "return {bit.arshift(-8,1),bit.rol(1,33),bit.ror(1,1),bit.bswap(1),bit.tobit(4294967301)}",
            "*5|:-4|:2|:-2147483648|:16777216|:5|",
        ),
        ("return {bit.tohex(255),bit.tohex(-1,4),bit.tohex(255,-4)}", "*3|$8|000000ff|$4|ffff|$4|00FF|"),
    ];
    for (script, reply) in cases {
        assert_eq!(world.say(&eval(script)), reply, "{script}");
    }
}

/// What scripts take is told, also from within one.
#[test]
fn info_tells_what_scripts_take() {
    let mut world = World::new();
    let number = |world: &mut World, name: &str| -> u64 {
        let info = world.say("INFO memory");
        let line = info.split('|').find_map(|line| line.strip_prefix(&format!("{name}:"))).expect(name);
        line.parse().expect(name)
    };
    assert_eq!((number(&mut world, "number_of_cached_scripts"), number(&mut world, "used_memory_lua")), (0, 0));
    world.say(&eval("return 1"));
    let one = number(&mut world, "used_memory_scripts");
    world.say(&eval("return 1"));
    world.say("SCRIPT LOAD \"return 2\"");
    let two = number(&mut world, "used_memory_scripts");
    assert!(one > 8 && two == 2 * one, "{one}, {two}");
    assert_eq!(number(&mut world, "number_of_cached_scripts"), 2);
    assert!(number(&mut world, "used_memory_vm_total") > 1000);
    let inside = world.say(&eval("return redis.call('INFO', 'memory')"));
    assert!(inside.contains("|number_of_cached_scripts:2|"), "{inside}");
    world.say("SCRIPT FLUSH");
    assert_eq!((number(&mut world, "used_memory_scripts"), number(&mut world, "used_memory_vm_total")), (0, 0));
}

#[test]
fn a_script_writes_no_more_than_a_commit_may_be() {
    let mut world = World::new();
    world.engine.log.enable(0);
    let script =
        "local v = string.rep('x', 10000000) while true do redis.call('SET', 'k', v) redis.call('INCR', 'n') end";
    let reply = world.send(world.me, &format!("EVAL \"{script}\" 0"));
    assert!(reply.contains("more than fits into one commit of the log"), "{reply}");
    // What it had written stays, as after any error.
    assert_eq!(world.say("GET n"), "$2|26|");
    let mut bytes = Vec::new();
    world.engine.log.take(&mut bytes);
    assert_eq!(bytes.len() / 10_000_000, 26);
    assert_eq!(world.say("EVAL \"return redis.call('SET', 'k', 'v')\" 0"), "+OK|");
}
