//! `impel audit`: what became of the entries that a group was given; and `impel audit verify`, from the evidence alone.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use impel_core::state::decision::{DECISIONS, Decision};
use serde_json::Value;

use super::options::{Word, Words, connect, read};
use super::verify::{Found, verify};
use super::{FAILED, understood};
use crate::audit::bundle::{self, Writer};
use crate::audit::completions::Place;
use crate::audit::source::Live;
use crate::audit::{self, Decided, Question, Sink, Totals, Trouble};
use crate::client::address;

const NAME: &str = "audit";

/// Exit code: something is to be done, or a bundle is not as it was.
const NOT_ACCEPTED: u8 = 1;

const HELP: &str = "\
Usage: impel audit --stream S --group G [options]
       impel audit verify DIR [--sum SHA256]

Decides of each entry that the group was given what is to be done, from both books: the group's, and that of the work. The
second is the server's ledger (XWORK) and, if there is another system where the effects landed, its completions. Prints all
entries that are not ACCEPT: id, work id, decision, reason, owner, delivery number, idle ms, with tabs between; then the counts.

  --ledger jsonl:FILE  the completions: an object a line, with work_id, digest, receipt, completed_at
  --ledger csv:FILE    the same with commas, and these names in the first line
  --ledger postgres:URL#TABLE    a table with these columns; URL as in libpq
  --work-field NAME    the field of the entries that has the work id (default: what the server knows, else the entry's ID)
  --out DIR            keep all evidence in this new directory: every reply, both books, the decisions, SHA-256 sums
  --all                print ACCEPT too
  --json               one object of JSON a line
  --page N             entries asked for at once, 2 to 10000 (default 500)
  --tmp DIR            for what is sorted on disk (default: the system's folder for such files)

Where the server has no XWORK nobody says that work has begun; whoever was given an entry may have begun it:
  --lease MS           a delivery that is older is not being worked on any more (default 60000)
  --idempotent         an attempt of unknown outcome may be made again: RERUN instead of HOLD

verify draws every conclusion again from the kept replies and completions, and names what differs. --sum is the sum that the
audit printed: with it made-up replies are found as well.
";

const EXITS: &str = "
Exit codes: 0 every entry is ACCEPT (verify: nothing was altered); 1 not; 2 it could not be found out; 64 the command line
is wrong.
";

/// How often progress is told.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

struct Arguments {
    question: Question,
    ledger: Option<Place>,
    out: Option<PathBuf>,
    temporary: PathBuf,
    all: bool,
    json: bool,
}

/// Runs it.
pub fn run(words: &[Vec<u8>]) -> ExitCode {
    if let Some((first, rest)) = words.split_first()
        && first == b"verify"
    {
        return verify(NAME, &format!("{HELP}{EXITS}"), rest, examine_bundle);
    }
    let help = &format!("{HELP}\n{}{EXITS}", address::HELP);
    let (arguments, words) = match understood(NAME, help, read(words, parse)) {
        Ok(understood) => understood,
        Err(code) => return code,
    };
    match examine(&words, &arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(NOT_ACCEPTED),
        Err(trouble) => {
            eprintln!("impel audit: {trouble}");
            ExitCode::from(FAILED)
        }
    }
}

fn parse(words: &mut Words<'_>) -> Result<Option<Arguments>, String> {
    let mut arguments = Arguments {
        question: Question {
            stream: String::new(),
            group: String::new(),
            work_field: None,
            lease_ms: 60_000,
            idempotent: false,
            page: 500,
            with_log: false,
        },
        ledger: None,
        out: None,
        temporary: std::env::temp_dir(),
        all: false,
        json: false,
    };
    while let Some(word) = words.next()? {
        let name = match word {
            Word::Option(name) => name,
            Word::Plain(word) => return Err(format!("{} is one word too many", word.escape_ascii())),
        };
        let question = &mut arguments.question;
        match &name[..] {
            "--help" | "-h" => return Ok(None),
            "--stream" => question.stream = words.value(&name)?,
            "--group" => question.group = words.value(&name)?,
            "--work-field" => question.work_field = Some(words.value(&name)?),
            "--lease" => question.lease_ms = words.number(&name)?,
            "--idempotent" => question.idempotent = true,
            "--page" => {
                let page = usize::try_from(words.number(&name)?).ok().filter(|page| (2..=10_000).contains(page));
                question.page = page.ok_or("--page is 2 to 10000")?;
            }
            "--ledger" => {
                arguments.ledger = Some(Place::parse(&words.value(&name)?)?);
            }
            "--out" => arguments.out = Some(words.value(&name)?.into()),
            "--tmp" => arguments.temporary = words.value(&name)?.into(),
            "--all" => arguments.all = true,
            "--json" => arguments.json = true,
            _ => return Err(format!("there is no option {name}")),
        }
    }
    if arguments.question.stream.is_empty() || arguments.question.group.is_empty() {
        return Err("--stream and --group are wanted".into());
    }
    arguments.question.with_log = arguments.out.is_some();
    Ok(Some(arguments))
}

/// Prints decisions, and hands everything on to the bundle.
struct Printer<'a> {
    arguments: &'a Arguments,
    out: BufWriter<io::Stdout>,
    bundle: Option<Writer>,
    read: u64,
    told: Instant,
}

impl Sink for Printer<'_> {
    fn given(&mut self, line: &Value) -> Result<(), Trouble> {
        self.read += 1;
        if self.told.elapsed() >= PROGRESS_EVERY {
            self.told = Instant::now();
            eprintln!("impel audit: {} entries, up to {}", self.read, line["id"].as_str().unwrap_or_default());
        }
        self.bundle.as_mut().map_or(Ok(()), |bundle| bundle.given(line))
    }

    fn row(&mut self, line: &Value) -> Result<(), Trouble> {
        self.bundle.as_mut().map_or(Ok(()), |bundle| bundle.row(line))
    }

    fn completion(&mut self, line: &Value) -> Result<(), Trouble> {
        self.bundle.as_mut().map_or(Ok(()), |bundle| bundle.completion(line))
    }

    fn decided(&mut self, decided: &Decided) -> Result<(), Trouble> {
        if self.arguments.all || decided.decision != Decision::Accept {
            let line = &decided.json;
            if self.arguments.json {
                audit::write_line(&mut self.out, line)?;
            } else {
                let columns = ["id", "work", "decision", "reason", "owner", "delivery", "idle_ms"]
                    .map(|name| column(&line[name]));
                writeln!(self.out, "{}", columns.join("\t"))?;
            }
        }
        self.bundle.as_mut().map_or(Ok(()), |bundle| bundle.decided(decided))
    }
}

fn column(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) if !text.chars().any(char::is_control) => text.clone(),
        other => other.to_string(),
    }
}

/// Answers whether every entry is accepted.
fn examine(words: &Words<'_>, arguments: &Arguments) -> Result<bool, Trouble> {
    let connection = connect(&words.address, words.timeout)?;
    let folder = arguments.out.as_deref();
    if let Some(folder) = folder {
        fs::create_dir(folder).map_err(|error| Trouble(format!("{}: {error}", folder.display())))?;
        let completions = arguments.ledger.as_ref().map(Place::shown);
        bundle::write_question(folder, &arguments.question, &words.address.to_string(), completions.as_deref())?;
    }
    let mut source = Live::new(connection, folder)?;
    let bundle = folder.map(Writer::new).transpose()?;
    let mut printer = Printer { arguments, out: BufWriter::new(io::stdout()), bundle, read: 0, told: Instant::now() };
    let mut found = match &arguments.ledger {
        Some(place) => Some(place.open()?),
        None => None,
    };
    let completions = found.as_mut().map(|found| &mut **found as &mut dyn Iterator<Item = _>);
    let totals = audit::run(&mut source, &arguments.question, completions, &mut printer, &arguments.temporary)?;
    source.finish()?;
    let Printer { mut out, bundle, .. } = printer;
    match arguments.json {
        true => audit::write_line(&mut out, &totals.json())?,
        false => out.write_all(page(&arguments.question, &totals).as_bytes())?,
    }
    if let (Some(bundle), Some(folder)) = (bundle, folder) {
        bundle.finish(&totals)?;
        let sum = bundle::seal(folder)?;
        if !arguments.json {
            writeln!(out, "evidence in {}, sum {sum}", folder.display())?;
        }
    }
    out.flush()?;
    Ok(totals.is_accepted())
}

fn page(question: &Question, totals: &Totals) -> String {
    let mut text = format!(
        "{} entries that group {} of {} had been given, up to {}\n",
        totals.entries, question.group, question.stream, totals.end
    );
    for decision in DECISIONS {
        let count = totals.decisions.get(decision.name()).copied().unwrap_or(0);
        text += &format!("{:<8} {count}\n", decision.name());
    }
    for (code, count) in &totals.reasons {
        text += &format!("  {code} {count}\n");
    }
    if totals.completions > 0 {
        text += &format!(
            "{} completions; work ids that no entry has: {}, that were completed several times alike: {}\n",
            totals.completions, totals.without_entry, totals.repeated
        );
    }
    text
}

/// Draws all conclusions of a bundle again.
fn examine_bundle(folder: &Path) -> Result<Found, Trouble> {
    let temporary = std::env::temp_dir().join(format!("impel-verify-{}", std::process::id()));
    fs::create_dir(&temporary)?;
    let verified = bundle::verify(folder, &temporary);
    fs::remove_dir_all(&temporary)?;
    let verified = verified?;
    let entries = verified.totals.as_ref().map_or(0, |totals| totals.entries);
    let accepted =
        if verified.totals.is_some_and(|totals| totals.is_accepted()) { "all ACCEPT" } else { "not all ACCEPT" };
    let content = format!("{entries} entries, {accepted}");
    Ok(Found { differences: verified.differences, content, sum: verified.sum })
}
