//! `bit`: operations on the bits of 32-bit integers, as the library of that name defines them.

use mlua::{Lua, Result, Table, Variadic};

type Fold = fn(i32, i32) -> i32;
type Shift = fn(i32, u32) -> i32;

/// Wraps a number into 32 bits.
fn wrapped(n: f64) -> i32 {
    n.round_ties_even().rem_euclid(4_294_967_296.0) as u32 as i32
}

/// The table that scripts know as `bit`.
pub(super) fn library(lua: &Lua) -> Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("tobit", lua.create_function(|_, n: f64| Ok(wrapped(n)))?)?;
    table.raw_set("bnot", lua.create_function(|_, n: f64| Ok(!wrapped(n)))?)?;
    table.raw_set("bswap", lua.create_function(|_, n: f64| Ok(wrapped(n).swap_bytes()))?)?;
    let folds: [(&str, Fold); 3] = [("band", |a, b| a & b), ("bor", |a, b| a | b), ("bxor", |a, b| a ^ b)];
    for (name, fold) in folds {
        let function = lua.create_function(move |_, (first, rest): (f64, Variadic<f64>)| {
            Ok(rest.iter().fold(wrapped(first), |all, &n| fold(all, wrapped(n))))
        })?;
        table.raw_set(name, function)?;
    }
    let shifts: [(&str, Shift); 5] = [
        ("lshift", |n, by| n << by),
        ("rshift", |n, by| ((n as u32) >> by) as i32),
        ("arshift", |n, by| n >> by),
        ("rol", |n, by| n.rotate_left(by)),
        ("ror", |n, by| n.rotate_right(by)),
    ];
    for (name, shift) in shifts {
        let function =
            lua.create_function(move |_, (n, by): (f64, f64)| Ok(shift(wrapped(n), wrapped(by) as u32 & 31)))?;
        table.raw_set(name, function)?;
    }
    let tohex = |_: &Lua, (n, digits): (f64, Option<f64>)| {
        let digits = digits.map_or(8, wrapped);
        let count = digits.unsigned_abs().min(8) as usize;
        let text = if digits < 0 { format!("{:08X}", wrapped(n)) } else { format!("{:08x}", wrapped(n)) };
        Ok(text[8 - count..].to_owned())
    };
    table.raw_set("tohex", lua.create_function(tohex)?)?;
    Ok(table)
}
