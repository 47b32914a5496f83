//! CONFIG GET, SET, RESETSTAT.

use crate::command::args::Args;
use crate::engine::Cx;
use crate::engine::acl::rules::User;
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
        if setting == Applied::Honoured("requirepass") {
            set_default_password(cx);
        }
        let (Applied::Honoured(name) | Applied::Known(name)) = setting;
        cx.request(Request::SettingChanged { name: name.into() });
    }
    let shown = cx.settings().slowlog_max_len as usize;
    cx.engine().slow_log.commands.truncate(shown);
    reply.ok();
    Ok(())
}

/// The password of the settings becomes the only one of the user `default`.
fn set_default_password(cx: &mut Cx<'_>) {
    let mut user = User::clone(cx.engine_ref().acl.default_user());
    user.set_only_password(&cx.settings().requirepass);
    cx.engine().put_user(user);
}

/// CONFIG RESETSTAT
pub fn resetstat(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    cx.engine().statistics = Statistics::default();
    reply.ok();
    Ok(())
}
