//! EVAL and its kin, and SCRIPT. The work is the interpreter's (`engine/script.rs`); here the arguments are read.

use super::Cx;
use crate::command::args::Args;
use crate::command::parse;
use crate::command::table::CommandId;
use crate::engine::fault::Fault;
use crate::engine::script::{Sha, sha1};
use crate::resp::encode::Reply;

/// A SHA-1 as a client writes it, in any case of letters.
fn sha_of(text: &[u8]) -> Option<Sha> {
    let mut sha: Sha = text.try_into().ok()?;
    sha.make_ascii_lowercase();
    Some(sha)
}

/// EVAL script numkeys [key …] [arg …], EVALSHA sha1 …, and both with _RO
pub(super) fn eval(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let by_sha = matches!(cx.spec.id, CommandId::EvalSha | CommandId::EvalShaRo);
    let read_only = matches!(cx.spec.id, CommandId::EvalRo | CommandId::EvalShaRo);
    let text = args.get(1);
    let sha = if by_sha { sha_of(text).ok_or(Fault::NO_SCRIPT)? } else { sha1(text) };
    let count = parse::integer(args.get(2)).ok_or(Fault::NOT_AN_INTEGER)?;
    if count > args.len() as i64 - 3 {
        return Err(Fault::NUMKEYS_TOO_LARGE);
    }
    let count = usize::try_from(count).map_err(|_| Fault::NUMKEYS_NEGATIVE)?;
    let (keys, arguments) = (args.slice(3, 3 + count), args.from(3 + count));
    // Away while it runs: a script cannot run another.
    let mut scripts = cx.engine().take_scripts();
    let kept = if by_sha { Ok(()) } else { scripts.keep(sha, text, false) };
    let result = kept.and_then(|()| scripts.run(cx, &sha, keys, arguments, read_only, reply));
    cx.engine().put_scripts(scripts);
    result
}

/// SCRIPT LOAD script
pub(super) fn load(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let sha = sha1(args.get(2));
    let mut scripts = cx.engine().take_scripts();
    let kept = scripts.keep(sha, args.get(2), true);
    cx.engine().put_scripts(scripts);
    kept?;
    reply.bulk(&sha);
    Ok(())
}

/// SCRIPT EXISTS sha1 …
pub(super) fn exists(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let shas = args.from(2);
    reply.array(shas.len());
    let scripts = cx.engine_ref().scripts();
    for text in shas.iter() {
        let there = sha_of(text).is_some_and(|sha| scripts.is_some_and(|scripts| scripts.has(&sha)));
        reply.int(i64::from(there));
    }
    Ok(())
}

/// SCRIPT FLUSH [ASYNC | SYNC]
pub(super) fn flush(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let good = match args.len() {
        2 => true,
        3 => [&b"async"[..], b"sync"].iter().any(|word| args.get(2).eq_ignore_ascii_case(word)),
        _ => false,
    };
    if !good {
        return Err(Fault::SCRIPT_FLUSH_OPTION);
    }
    cx.engine().forget_scripts();
    reply.ok();
    Ok(())
}
