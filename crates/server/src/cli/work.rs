//! `impel work`: runs a command for each entry of a stream that a group gets.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use super::options::{Word, Words};
use super::{FAILED, understood};
use crate::client::address;
use crate::worker::{self, Options, guard};

const NAME: &str = "work";

const HELP: &str = "\
Usage: impel work --stream S --group G [options] -- COMMAND [argument ...]

Runs COMMAND once for each entry that the group gets. The entry is on its standard input, as one line of JSON
({\"stream\":…,\"group\":…,\"consumer\":…,\"delivery\":1,\"id\":…,\"fields\":{…}}), and in its environment: IMPEL_STREAM, IMPEL_GROUP,
IMPEL_CONSUMER, IMPEL_ID, IMPEL_DELIVERY, IMPEL_WORK, and IMPEL_FIELD_name for each short field (all to 128 KiB).

Exit code 0 means done: the entry is acknowledged. 75 means later: it is given again after --retry-in. Anything else means
failed: it is given back, with the code or signal and the last line of standard error as the reason.

  --consumer NAME      as whom; nobody else may use it at the same time (default: host and process)
  --concurrency N      commands at the same time (default 1)
  --lease MS           an entry of a worker that is silent for so long is another's to take (default 60000; the group's own
                       LEASE comes first). While a command runs its lease is renewed
  --retry-in MS        (default 10000)
  --timeout MS         a command that takes longer is ended and has failed
  --grace MS           on SIGTERM: how long commands may go on before they are ended (default 30000). A second signal ends
                       them at once
  --work-field NAME    the field that has the work id (default: what the group's policy says)
  --receipt            the last line of the command's standard output is the receipt
  --digest             the SHA-256 of that line is the digest: an attempt at completed work that comes to something else is
                       a conflict
  --emit STREAM        that line is an object of JSON, and an entry with its names and values is added to STREAM in the same
                       step in which the work is completed: once for each work id
  --plain              use XREADGROUP, XAUTOCLAIM and XACK alone, as with a server that has no XWORK
  --create             make stream and group if they are not there; the group begins with the first entry
  --until-empty        end when there is nothing more to do
";

const EXITS: &str = "
Exit codes: 0 ended by a signal, or by --until-empty; 2 the server, or the command cannot be run; 64 the command line is
wrong. Commands that fail do not change it.
";

/// Runs it.
pub fn run(words: &[Vec<u8>]) -> ExitCode {
    if words.first().is_some_and(|word| word == guard::WORD) {
        return guard::run(words);
    }
    let help = &format!("{HELP}{}{EXITS}", address::HELP);
    let options = match understood(NAME, help, parse(words)) {
        Ok(options) => options,
        Err(code) => return code,
    };
    match worker::run(options) {
        Ok(counts) => {
            let of = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
            eprintln!(
                "impel work: {} done, {} failed, {} passed over, {} lost, {} given back unbegun",
                of(&counts.done),
                of(&counts.failed),
                of(&counts.passed),
                of(&counts.lost),
                of(&counts.returned)
            );
            ExitCode::SUCCESS
        }
        Err(what) => {
            eprintln!("impel work: {what}");
            ExitCode::from(FAILED)
        }
    }
}

fn parse(words: &[Vec<u8>]) -> Result<Option<Options>, String> {
    let mut words = Words::new(words)?;
    let mut options = Options {
        address: words.address.clone(),
        timeout: words.timeout,
        stream: String::new(),
        group: String::new(),
        consumer: String::new(),
        concurrency: 1,
        lease_ms: 60_000,
        retry_in_ms: 10_000,
        grace_ms: 30_000,
        command_ms: None,
        work_field: None,
        receipt: false,
        digest: false,
        emit: None,
        plain: false,
        create: false,
        until_empty: false,
        command: Vec::new(),
    };
    while let Some(word) = words.next()? {
        let Word::Option(name) = word else { return Err("the command stands behind --".into()) };
        match &name[..] {
            "--help" | "-h" => return Ok(None),
            "--stream" => options.stream = words.value(&name)?,
            "--group" => options.group = words.value(&name)?,
            "--consumer" => options.consumer = words.value(&name)?,
            "--concurrency" => {
                let n = words.number(&name)?;
                options.concurrency =
                    usize::try_from(n).ok().filter(|n| (1..=1024).contains(n)).ok_or("--concurrency is 1 to 1024")?;
            }
            "--lease" => {
                options.lease_ms = Some(words.number(&name)?).filter(|&ms| ms > 0).ok_or("--lease is 1 or more")?;
            }
            "--retry-in" => {
                let ms = Some(words.number(&name)?).filter(|&ms| ms < 1 << 53);
                options.retry_in_ms = ms.ok_or("--retry-in is less than 2^53")?;
            }
            "--timeout" => options.command_ms = Some(words.number(&name)?),
            "--grace" => options.grace_ms = words.number(&name)?,
            "--work-field" => options.work_field = Some(words.value(&name)?),
            "--receipt" => options.receipt = true,
            "--digest" => options.digest = true,
            "--emit" => options.emit = Some(words.value(&name)?),
            "--plain" => options.plain = true,
            "--create" => options.create = true,
            "--until-empty" => options.until_empty = true,
            _ => return Err(format!("there is no option {name}")),
        }
    }
    options.command = words.take_rest().into_iter().map(OsString::from_vec).collect();
    (options.address, options.timeout) = (words.address.clone(), words.timeout);
    if options.stream.is_empty() || options.group.is_empty() {
        return Err("--stream and --group are wanted".into());
    }
    if options.plain && options.emit.is_some() {
        return Err("--emit is a part of XWORK DONE, which --plain does without".into());
    }
    if options.command.is_empty() {
        return Err("a command is wanted, behind --".into());
    }
    if options.consumer.is_empty() {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        options.consumer = format!("{host}-{}", std::process::id());
    }
    Ok(Some(options))
}
