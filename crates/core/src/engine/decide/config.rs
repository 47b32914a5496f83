//! CONFIG GET, SET, RESETSTAT.

use crate::command::args::Args;
use crate::engine::Cx;
use crate::engine::facts::Request;
use crate::engine::fault::Fault;
use crate::engine::observe::Statistics;
use crate::resp::encode::Reply;
use crate::settings::Applied;

/// CONFIG GET pattern …
pub fn get(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    cx.settings().config_get(args.from(2), reply);
    Ok(())
}

/// CONFIG SET name value …
pub fn set(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let applied = cx.engine().settings.config_set(args.from(2)).map_err(Fault::owned)?;
    for setting in applied {
        // What means nothing here is told as well, so that the process can say so.
        let (Applied::Honoured(name) | Applied::Known(name)) = setting;
        cx.request(Request::SettingChanged { name: name.into() });
    }
    let shown = cx.settings().slowlog_max_len as usize;
    cx.engine().slow_log.commands.truncate(shown);
    reply.ok();
    Ok(())
}

/// CONFIG RESETSTAT
pub fn resetstat(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    cx.engine().statistics = Statistics::default();
    reply.ok();
    Ok(())
}
