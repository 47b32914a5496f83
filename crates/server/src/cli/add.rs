//! `impel add STREAM field value …`: adds an entry to a stream of a server.

use std::io::{self, BufRead};
use std::process::ExitCode;

use super::options::{Word, Words, connect, read};
use super::{FAILED, print, understood};
use crate::client::entry::fields_of_json;
use crate::client::{Connection, address, encode};

const NAME: &str = "add";

const HELP: &str = "\
Usage: impel add STREAM field value [field value ...] [options]
       impel add STREAM --json [options]     one entry a line of standard input: {\"field\": \"value\", ...}

Adds entries to a stream and prints the ID of each.

  --id ID              the ID of the entry (default *: the server's next)
  --maxlen N           trim the stream to about so many entries
  --json               read entries from standard input; what is no string in them is added as JSON
";

/// Entries that are sent before replies are read.
const BATCH: usize = 500;

struct Arguments {
    stream: Vec<u8>,
    fields: Vec<Vec<u8>>,
    id: String,
    maxlen: Option<u64>,
    json: bool,
}

/// Runs it.
pub fn run(words: &[Vec<u8>]) -> ExitCode {
    let help = &format!("{HELP}{}\nExit codes: 0 all added; 2 not; 64 the command line is wrong.\n", address::HELP);
    let (arguments, words) = match understood(NAME, help, read(words, parse)) {
        Ok(understood) => understood,
        Err(code) => return code,
    };
    let (address, timeout) = (words.address.clone(), words.timeout);
    match connect(&address, timeout).and_then(|mut connection| add(&mut connection, &arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("impel add: {what}");
            ExitCode::from(FAILED)
        }
    }
}

fn parse(words: &mut Words<'_>) -> Result<Option<Arguments>, String> {
    let (mut plain, mut id, mut maxlen, mut json) = (Vec::new(), "*".to_owned(), None, false);
    while let Some(word) = words.next()? {
        match word {
            Word::Plain(word) => plain.push(word.to_vec()),
            Word::Option(name) => match &name[..] {
                "--help" | "-h" => return Ok(None),
                "--id" => id = words.value(&name)?,
                "--maxlen" => maxlen = Some(words.number(&name)?),
                "--json" => json = true,
                _ => return Err(format!("there is no option {name}")),
            },
        }
    }
    // Behind `--` a field may begin with dashes.
    plain.extend(words.take_rest());
    if plain.is_empty() {
        return Err("a stream is wanted".into());
    }
    let stream = plain.remove(0);
    match (json, plain.len()) {
        (true, 0) => {}
        (true, _) => return Err("with --json the fields come from standard input".into()),
        (false, n) if n == 0 || n % 2 == 1 => return Err("pairs of field and value are wanted".into()),
        _ => {}
    }
    Ok(Some(Arguments { stream, fields: plain, id, maxlen, json }))
}

fn command(arguments: &Arguments, fields: &[impl AsRef<[u8]>], out: &mut Vec<u8>) {
    let mut words = vec![b"XADD".to_vec(), arguments.stream.clone()];
    if let Some(maxlen) = arguments.maxlen {
        words.extend([b"MAXLEN".to_vec(), b"~".to_vec(), maxlen.to_string().into_bytes()]);
    }
    words.push(arguments.id.clone().into_bytes());
    words.extend(fields.iter().map(|field| field.as_ref().to_vec()));
    encode(&words, out);
}

fn receive(connection: &mut Connection, count: usize) -> Result<(), String> {
    for _ in 0..count {
        let reply = connection.receive(None).map_err(|failure| failure.to_string())?;
        if let Some(text) = reply.error() {
            return Err(text);
        }
        print(&format!("{}\n", reply.text()));
    }
    Ok(())
}

fn add(connection: &mut Connection, arguments: &Arguments) -> Result<(), String> {
    let mut bytes = Vec::new();
    if !arguments.json {
        command(arguments, &arguments.fields, &mut bytes);
        connection.send(&bytes).map_err(|failure| failure.to_string())?;
        return receive(connection, 1);
    }
    let mut count = 0;
    for (number, line) in io::stdin().lock().lines().enumerate() {
        let line = line.map_err(|error| format!("standard input: {error}"))?;
        if !line.trim().is_empty() {
            let fields = fields_of_json(&line).map_err(|what| format!("line {}: {what}", number + 1))?;
            command(arguments, &fields, &mut bytes);
            count += 1;
        }
        if count == BATCH {
            connection.send(&std::mem::take(&mut bytes)).map_err(|failure| failure.to_string())?;
            receive(connection, std::mem::take(&mut count))?;
        }
    }
    connection.send(&bytes).map_err(|failure| failure.to_string())?;
    receive(connection, count)
}
