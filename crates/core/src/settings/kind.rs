//! What a setting can hold, how it is read from words and how it is shown. Error texts are those of Redis 8.2, which
//! clients' tests compare.

use super::Settings;

/// Reads the words of a setting into its field; the error is a text for people.
pub type SetWords = fn(&mut Settings, &[&[u8]], Origin) -> Result<(), String>;

/// The kind of a setting, with access to its field.
pub enum Kind {
    /// `yes` or `no`.
    YesNo {
        /// Reads the field.
        get: fn(&Settings) -> bool,
        /// Writes the field.
        set: fn(&mut Settings, bool),
    },
    /// A decimal integer within a range, both ends included.
    Integer {
        /// Smallest.
        min: i64,
        /// Greatest.
        max: i64,
        /// Reads the field.
        get: fn(&Settings) -> i64,
        /// Writes the field.
        set: fn(&mut Settings, i64),
    },
    /// Bytes, with an optional unit (`64mb`).
    Memory {
        /// Smallest.
        min: u64,
        /// Greatest.
        max: u64,
        /// Reads the field.
        get: fn(&Settings) -> u64,
        /// Writes the field.
        set: fn(&mut Settings, u64),
    },
    /// Permission bits in octal.
    Octal {
        /// Greatest.
        max: u32,
        /// Reads the field.
        get: fn(&Settings) -> u32,
        /// Writes the field.
        set: fn(&mut Settings, u32),
    },
    /// One of some words, in any case of letters.
    Choice {
        /// The words.
        words: &'static [&'static str],
        /// Reads the field, as an index of `words`.
        get: fn(&Settings) -> usize,
        /// Writes the field.
        set: fn(&mut Settings, usize),
    },
    /// Text.
    Text {
        /// Reads the field.
        get: fn(&Settings) -> &str,
        /// Writes the field.
        set: fn(&mut Settings, String),
    },
    /// Any bytes.
    Bytes {
        /// Reads the field.
        get: fn(&Settings) -> &[u8],
        /// Writes the field.
        set: fn(&mut Settings, Vec<u8>),
    },
    /// One word with a meaning of its own.
    Parsed {
        /// What may stand there, for the help text.
        syntax: &'static str,
        /// Shows the field.
        get: fn(&Settings) -> String,
        /// Writes the field.
        set: fn(&mut Settings, &[u8]) -> Result<(), String>,
    },
    /// Several words with a meaning of their own.
    Words {
        /// What may stand there, for the help text.
        syntax: &'static str,
        /// Shows the field.
        get: fn(&Settings) -> String,
        /// Writes the field.
        set: SetWords,
    },
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The command line or a file: several `save` add up, and everything may be set.
    Start,
    /// CONFIG SET: replaces, and settings that are fixed at the start are refused.
    Runtime,
}

impl Kind {
    /// Reads `words` into the field. The error is a text for people, without the name of the setting.
    pub(super) fn set(&self, settings: &mut Settings, words: &[&[u8]], origin: Origin) -> Result<(), String> {
        if let Kind::Words { set, .. } = self {
            // One argument may hold all the words: CONFIG SET has no other way.
            let split: Vec<&[u8]> = match words {
                [one] => one.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect(),
                several => several.to_vec(),
            };
            return set(settings, &split, origin);
        }
        let [word] = *words else { return Err("wrong number of arguments".into()) };
        match self {
            Kind::YesNo { set, .. } => set(settings, yes_no(word)?),
            Kind::Integer { min, max, set, .. } => set(settings, integer(word, *min, *max)?),
            Kind::Memory { min, max, set, .. } => set(settings, memory_within(word, *min, *max)?),
            Kind::Octal { max, set, .. } => set(settings, octal(word, *max)?),
            Kind::Choice { words, set, .. } => set(settings, choose(word, words)?),
            Kind::Text { set, .. } => {
                let text = std::str::from_utf8(word).map_err(|_| "argument must be UTF-8 text")?;
                if text.contains('\0') {
                    return Err("argument must not contain a NUL byte".into());
                }
                set(settings, text.to_owned());
            }
            Kind::Bytes { set, .. } => set(settings, word.to_vec()),
            Kind::Parsed { set, .. } => set(settings, word)?,
            Kind::Words { .. } => unreachable!("handled above"),
        }
        Ok(())
    }

    /// The value as CONFIG GET shows it.
    pub(super) fn get(&self, settings: &Settings) -> Vec<u8> {
        match self {
            Kind::YesNo { get, .. } => if get(settings) { "yes" } else { "no" }.into(),
            Kind::Integer { get, .. } => get(settings).to_string().into(),
            Kind::Memory { get, .. } => get(settings).to_string().into(),
            Kind::Octal { get, .. } => format!("{:o}", get(settings)).into(),
            Kind::Choice { words, get, .. } => words[get(settings)].into(),
            Kind::Text { get, .. } => get(settings).into(),
            Kind::Bytes { get, .. } => get(settings).into(),
            Kind::Parsed { get, .. } | Kind::Words { get, .. } => get(settings).into(),
        }
    }

    /// What may stand there, for the help text.
    pub(super) fn syntax(&self) -> String {
        match self {
            Kind::YesNo { .. } => "yes|no".into(),
            Kind::Integer { min, max: i64::MAX | 4_294_967_295 | 2_147_483_647, .. } => format!("<{min}..>"),
            Kind::Integer { min, max, .. } => format!("<{min}..{max}>"),
            Kind::Memory { min: 0, .. } => "<bytes>".into(),
            Kind::Memory { min, .. } => format!("<bytes, {}..>", with_unit(*min)),
            Kind::Octal { max, .. } => format!("<octal 0..{max:o}>"),
            Kind::Choice { words, .. } => words.join("|"),
            Kind::Text { .. } | Kind::Bytes { .. } => "<text>".into(),
            Kind::Parsed { syntax, .. } | Kind::Words { syntax, .. } => (*syntax).into(),
        }
    }
}

/// `yes` or `no` in any case of letters.
pub(super) fn yes_no(word: &[u8]) -> Result<bool, String> {
    match word.to_ascii_lowercase().as_slice() {
        b"yes" => Ok(true),
        b"no" => Ok(false),
        _ => Err("argument must be 'yes' or 'no'".into()),
    }
}

/// Index of `word` among `choices`, in any case of letters.
pub(super) fn choose(word: &[u8], choices: &[&str]) -> Result<usize, String> {
    let chosen = choices.iter().position(|choice| choice.as_bytes().eq_ignore_ascii_case(word));
    chosen.ok_or_else(|| format!("argument(s) must be one of the following: {}", choices.join(", ")))
}

/// A strict decimal integer: no plus sign, no leading zero, no blank.
pub(super) fn strict_integer(word: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    (itoa::Buffer::new().format(number).as_bytes() == word).then_some(number)
}

fn integer(word: &[u8], min: i64, max: i64) -> Result<i64, String> {
    let number = strict_integer(word).ok_or("argument couldn't be parsed into an integer")?;
    if (min..=max).contains(&number) {
        return Ok(number);
    }
    Err(format!("argument must be between {min} and {max} inclusive"))
}

fn octal(word: &[u8], max: u32) -> Result<u32, String> {
    let digits = std::str::from_utf8(word).ok().filter(|text| !text.starts_with('+'));
    let number = digits.and_then(|text| u32::from_str_radix(text, 8).ok());
    let number = number.ok_or("argument couldn't be parsed as an octal number")?;
    if number <= max { Ok(number) } else { Err(format!("argument must be between 0 and {max:o} inclusive")) }
}

/// Why a size cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MemoryError {
    /// Not digits with a known unit.
    Form,
    /// More than 64 bits.
    Overflow,
}

/// A size: `1024`, `1kb`, `64mb`. Units with a b are powers of 1024, those without are powers of 1000, as in Redis.
/// Unlike there, an empty word is no size.
pub(super) fn memory(word: &[u8]) -> Result<u64, MemoryError> {
    let digits = word.iter().take_while(|b| b.is_ascii_digit()).count();
    let unit: u64 = match word[digits..].to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return Err(MemoryError::Form),
    };
    if digits == 0 {
        return Err(MemoryError::Form);
    }
    let digits = std::str::from_utf8(&word[..digits]).expect("digits are text");
    let number: u64 = digits.parse().map_err(|_| MemoryError::Overflow)?;
    number.checked_mul(unit).ok_or(MemoryError::Overflow)
}

fn memory_within(word: &[u8], min: u64, max: u64) -> Result<u64, String> {
    match memory(word) {
        Ok(size) if (min..=max).contains(&size) => Ok(size),
        Err(MemoryError::Form) => Err("argument must be a memory value".into()),
        _ if max == u64::MAX => Err(format!("argument must be greater or equal to {min}")),
        _ => Err(format!("argument must be between {min} and {max} inclusive")),
    }
}

/// A size with the greatest unit that divides it, for people.
pub(super) fn with_unit(size: u64) -> String {
    for (unit, name) in [(1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb")] {
        if size > 0 && size.is_multiple_of(unit) {
            return format!("{}{name}", size / unit);
        }
    }
    size.to_string()
}
