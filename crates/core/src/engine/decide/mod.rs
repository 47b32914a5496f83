//! What each command does, one file per family. A function here checks everything first, then writes its reply and
//! emits its records; when it answers an error it has emitted nothing. It changes nothing by itself.

mod acl;
mod budget;
mod claim;
mod client;
mod config;
mod connection;
mod delay;
mod delete;
mod expire;
mod group;
mod group_read;
mod held;
mod idempotence;
pub mod info;
mod keys;
mod nack;
mod options;
mod pending;
mod pubsub;
mod range;
mod read;
mod retention;
mod scan;
mod script;
mod server;
mod stream_config;
mod stream_info;
mod strings;
mod trim;
mod work;
mod xadd;
mod xaddm;

pub use connection::REDIS_VERSION;

use super::fault::Fault;
use super::pubsub::TopicKind;
use super::{Cx, txn};
use crate::command::args::Args;
use crate::command::table::{self, CommandId};
use crate::command::views;
use crate::resp::encode::Reply;

/// Carries out a command that was judged to be good.
pub fn dispatch(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    use CommandId as C;
    match cx.spec.id {
        C::XAdd => xadd::xadd(cx, args, reply),
        C::XReadGroup => group_read::xreadgroup(cx, args, reply),
        C::XRead => read::xread(cx, args, reply),
        C::XAck => delete::xack(cx, args, reply),
        C::XRange => range::xrange(cx, args, reply),
        C::XRevRange => range::xrevrange(cx, args, reply),
        C::XLen => range::xlen(cx, args, reply),
        C::XDel => delete::xdel(cx, args, reply),
        C::XDelEx => delete::xdelex(cx, args, reply),
        C::XAckDel => delete::xackdel(cx, args, reply),
        C::XTrim => trim::xtrim(cx, args, reply),
        C::XSetId => xadd::xsetid(cx, args, reply),
        C::XClaim => claim::xclaim(cx, args, reply),
        C::XAutoClaim => claim::xautoclaim(cx, args, reply),
        C::XNack => nack::xnack(cx, args, reply),
        C::XPending => pending::xpending(cx, args, reply),
        C::XGroupCreate => group::create(cx, args, reply),
        C::XGroupSetId => group::setid(cx, args, reply),
        C::XGroupCfgSet => group::cfgset(cx, args, reply),
        C::XGroupDestroy => group::destroy(cx, args, reply),
        C::XGroupCreateConsumer => group::create_consumer(cx, args, reply),
        C::XGroupDelConsumer => group::delete_consumer(cx, args, reply),
        C::XInfoStream => stream_info::stream(cx, args, reply),
        C::XInfoGroups => stream_info::groups(cx, args, reply),
        C::XInfoGroupStats => stream_info::group_stats(cx, args, reply),
        C::XInfoConsumers => stream_info::consumers(cx, args, reply),

        C::XCfgSet => stream_config::xcfgset(cx, args, reply),
        C::XCfgGet => stream_config::xcfgget(cx, args, reply),
        C::XAddM => xaddm::xaddm(cx, args, reply),
        C::XIdmpRecord => idempotence::xidmprecord(cx, args, reply),

        C::XWorkBegin => work::begin::begin(cx, args, reply),
        C::XWorkDone => work::done::done(cx, args, reply),
        C::XWorkFail => work::fail::fail(cx, args, reply),
        C::XWorkHold => work::hold::hold(cx, args, reply),
        C::XWorkRelease => work::hold::release(cx, args, reply),
        C::XWorkGet => work::get(cx, args, reply),
        C::XWorkLog => work::log::log(cx, args, reply),
        C::XWorkAudit => work::audit::audit(cx, args, reply),
        C::XWorkRedrive => work::redrive::redrive(cx, args, reply),
        C::XWorkPolicy => work::policy::policy(cx, args, reply),

        C::Get => strings::get(cx, args, reply),
        C::Set => strings::set(cx, args, reply),
        C::SetEx | C::PSetEx => strings::setex(cx, args, reply),
        C::SetNx => strings::setnx(cx, args, reply),
        C::GetSet => strings::getset(cx, args, reply),
        C::GetDel => strings::getdel(cx, args, reply),
        C::GetEx => strings::getex(cx, args, reply),
        C::MGet => strings::mget(cx, args, reply),
        C::MSet => strings::mset(cx, args, reply),
        C::MSetNx => strings::msetnx(cx, args, reply),
        C::Append => strings::append(cx, args, reply),
        C::StrLen => strings::strlen(cx, args, reply),
        C::GetRange | C::Substr => strings::getrange(cx, args, reply),
        C::SetRange => strings::setrange(cx, args, reply),
        C::Incr => strings::incr(cx, args, 1, reply),
        C::Decr => strings::incr(cx, args, -1, reply),
        C::IncrBy => strings::incrby(cx, args, reply),
        C::DecrBy => strings::decrby(cx, args, reply),
        C::IncrByFloat => strings::incrbyfloat(cx, args, reply),

        C::Del | C::Unlink => keys::del(cx, args, reply),
        C::Exists | C::Touch => keys::exists(cx, args, reply),
        C::Type => keys::type_of(cx, args, reply),
        C::Rename => keys::rename(cx, args, reply),
        C::RenameNx => keys::renamenx(cx, args, reply),
        C::Copy => keys::copy(cx, args, reply),
        C::Move => keys::move_to(cx, args, reply),
        C::FlushDb | C::FlushAll => keys::flush(cx, args, reply),
        C::SwapDb => keys::swapdb(cx, args, reply),
        C::DbSize => scan::dbsize(cx, reply),
        C::RandomKey => scan::randomkey(cx, reply),
        C::Keys => scan::keys(cx, args, reply),
        C::Scan => scan::scan(cx, args, reply),
        C::Expire | C::PExpire | C::ExpireAt | C::PExpireAt => expire::expire(cx, args, reply),
        C::Ttl | C::PTtl | C::ExpireTime | C::PExpireTime => expire::ttl(cx, args, reply),
        C::Persist => expire::persist(cx, args, reply),
        C::ObjectEncoding | C::ObjectRefCount | C::ObjectIdleTime | C::ObjectFreq => keys::object(cx, args, reply),

        C::Multi => txn::multi(cx, reply),
        C::Exec => txn::exec(cx, reply),
        C::Discard => txn::discard(cx, reply),
        C::Watch => txn::watch(cx, args, reply),
        C::Unwatch => {
            txn::unwatch(cx, reply);
            Ok(())
        }

        C::Eval | C::EvalRo | C::EvalSha | C::EvalShaRo => script::eval(cx, args, reply),
        C::ScriptLoad => script::load(cx, args, reply),
        C::ScriptExists => script::exists(cx, args, reply),
        C::ScriptFlush => script::flush(cx, args, reply),
        C::ScriptKill => Err(Fault::NOT_BUSY),

        C::Ping => connection::ping(cx, args, reply),
        C::Echo => {
            reply.bulk(args.get(1));
            Ok(())
        }
        C::Auth => connection::auth(cx, args, reply),
        C::Hello => connection::hello(cx, args, reply),
        C::Select => connection::select(cx, args, reply),
        C::Reset => connection::reset(cx, reply),
        C::Quit => connection::quit(cx, reply),
        C::AclCat => acl::cat(args, reply),
        C::AclDelUser => acl::delete_user(cx, args, reply),
        C::AclDryRun => acl::dry_run(cx, args, reply),
        C::AclGenPass => acl::generate_password(cx, args, reply),
        C::AclGetUser => acl::get_user(cx, args, reply),
        C::AclList | C::AclUsers => acl::users(cx, reply),
        C::AclLog => acl::log(cx, args, reply),
        C::AclLoad => acl::load(cx, reply),
        C::AclSave => acl::save(cx, reply),
        C::AclSetUser => acl::set_user(cx, args, reply),
        C::AclWhoAmI => acl::who_am_i(cx, reply),

        C::Subscribe => pubsub::subscribe(cx, args, TopicKind::Channel, reply),
        C::Unsubscribe => pubsub::unsubscribe(cx, args, TopicKind::Channel, reply),
        C::PSubscribe => pubsub::subscribe(cx, args, TopicKind::Pattern, reply),
        C::PUnsubscribe => pubsub::unsubscribe(cx, args, TopicKind::Pattern, reply),
        C::SSubscribe => pubsub::subscribe(cx, args, TopicKind::Shard, reply),
        C::SUnsubscribe => pubsub::unsubscribe(cx, args, TopicKind::Shard, reply),
        C::Publish => pubsub::publish(cx, args, TopicKind::Channel, reply),
        C::SPublish => pubsub::publish(cx, args, TopicKind::Shard, reply),
        C::PubSubChannels => pubsub::channels(cx, args, TopicKind::Channel, reply),
        C::PubSubShardChannels => pubsub::channels(cx, args, TopicKind::Shard, reply),
        C::PubSubNumSub => pubsub::numsub(cx, args, TopicKind::Channel, reply),
        C::PubSubShardNumSub => pubsub::numsub(cx, args, TopicKind::Shard, reply),
        C::PubSubNumPat => pubsub::numpat(cx, reply),

        C::ClientId => client::id(cx, reply),
        C::ClientInfo => client::info(cx, reply),
        C::ClientList => client::list(cx, args, reply),
        C::ClientSetName => client::set_name(cx, args, reply),
        C::ClientGetName => client::get_name(cx, reply),
        C::ClientSetInfo => client::set_info(cx, args, reply),
        C::ClientKill => client::kill(cx, args, reply),
        C::ClientUnblock => client::unblock(cx, args, reply),
        C::ClientReply => client::reply_mode(cx, args, reply),
        C::ClientNoEvict | C::ClientNoTouch => client::on_off(cx, args, reply),
        C::ClientPause => client::pause(cx, args, reply),
        C::ClientUnpause => {
            cx.engine().unpause();
            reply.ok();
            Ok(())
        }

        C::Command
        | C::CommandCount
        | C::CommandInfo
        | C::CommandDocs
        | C::CommandList
        | C::CommandGetKeys
        | C::CommandGetKeysAndFlags => {
            command_view(cx.spec.id, args, reply);
            Ok(())
        }

        C::ConfigGet => config::get(cx, args, reply),
        C::ConfigSet => config::set(cx, args, reply),
        C::ConfigResetStat => config::resetstat(cx, reply),
        C::ConfigRewrite => Err(Fault::owned("ERR CONFIG REWRITE is not supported: change the file by hand")),

        C::Info => info::info(cx, args, reply),
        C::Time => server::time(cx, reply),
        C::LastSave => server::lastsave(cx, reply),
        C::Save => server::save(cx, args),
        C::BgSave => server::bgsave(cx, args, reply),
        C::BgRewriteAof => server::bgrewriteaof(cx, reply),
        C::Shutdown => server::shutdown(cx, args),
        C::Wait => server::wait(cx, args, reply),
        C::WaitAof => server::waitaof(cx, args, reply),
        C::Debug => server::debug(cx, args, reply),
        C::Role => server::role(cx, reply),
        C::MemoryUsage => server::memory_usage(cx, args, reply),
        C::MemoryStats => server::memory_stats(cx, reply),
        C::MemoryDoctor => server::memory_doctor(reply),
        C::MemoryPurge => {
            reply.ok();
            Ok(())
        }
        C::SlowLogGet => server::slowlog_get(cx, args, reply),
        C::SlowLogLen => server::slowlog_len(cx, reply),
        C::SlowLogReset => server::slowlog_reset(cx, reply),
        C::LatencyLatest => server::latency_latest(reply),
        C::LatencyHistory => server::latency_history(reply),
        C::LatencyReset => server::latency_reset(reply),
        C::LatencyDoctor => server::latency_doctor(reply),
        C::LatencyGraph => server::latency_graph(args),
        C::LatencyHistogram => server::latency_histogram(reply),
        C::ReplicaOf => server::replicaof(args, reply),

        C::ReadOnly | C::ReadWrite | C::Asking => Err(Fault::CLUSTER_DISABLED),
        C::ClusterInfo
        | C::ClusterMyId
        | C::ClusterNodes
        | C::ClusterSlots
        | C::ClusterShards
        | C::ClusterKeySlot
        | C::ClusterCountKeysInSlot
        | C::ClusterGetKeysInSlot => Err(Fault::CLUSTER_DISABLED),

        C::AclHelp
        | C::XGroupHelp
        | C::XInfoHelp
        | C::XWorkHelp
        | C::ObjectHelp
        | C::ClientHelp
        | C::ClusterHelp
        | C::CommandHelp
        | C::ConfigHelp
        | C::MemoryHelp
        | C::SlowLogHelp
        | C::LatencyHelp
        | C::PubSubHelp
        | C::ScriptHelp => {
            let container = table::lookup(args.get(0)).expect("a subcommand has a container");
            views::help(container, reply);
            Ok(())
        }
        C::Container => Err(Fault::arity(cx.spec.name)),
    }
}

/// COMMAND and its subcommands, which only tell about the table.
fn command_view(command: CommandId, args: Args<'_>, reply: &mut Reply<'_>) {
    match command {
        CommandId::CommandCount => views::command_count(reply),
        CommandId::CommandInfo => views::command_info(args.from(2), reply),
        CommandId::CommandDocs => views::command_docs(args.from(2), reply),
        CommandId::CommandList => views::command_list(args.from(2), reply),
        CommandId::CommandGetKeys => views::command_getkeys(args.from(2), reply),
        CommandId::CommandGetKeysAndFlags => views::command_getkeysandflags(args.from(2), reply),
        _ => views::command(reply),
    }
}
