// node-redis with its defaults, in RESP2 and RESP3: produce, read, acknowledge, claim; blocking reads, pipelines.
//
// usage: node node_redis.js PORT SOCKET
'use strict';

const assert = require('node:assert');
const { createClient } = require('redis');
const { main, wokenBy } = require('./checks.js');

const [port, socket] = process.argv.slice(2);

/** Runs with clients that are closed at the end, whatever happens. */
async function clients(count, options, run) {
  const opened = Array.from({ length: count }, () => createClient({ url: `redis://127.0.0.1:${port}`, ...options }));
  try {
    for (const client of opened) {
      client.on('error', () => {}); // every command that it breaks rejects by itself
      await client.connect();
    }
    await opened[0].flushAll();
    await run(...opened);
  } finally {
    opened.forEach((client) => client.destroy());
  }
}

/** Entries as plain data: the library hands out objects without a prototype. */
const plain = (value) => JSON.parse(JSON.stringify(value));
const entries = (list) => plain(list).map(({ id, message }) => ({ id, message }));
/** The entries of the one stream of a read; the library shapes it by protocol. */
const only = (reply) => entries(Array.isArray(reply) ? reply[0].messages : Object.values(reply)[0]);

async function workRound(client) {
  const ids = [await client.xAdd('s', '*', { n: '0' }), await client.xAdd('s', '*', { n: '1' })];
  const rows = ids.map((id, n) => ({ id, message: { n: String(n) } }));
  assert.strictEqual(await client.xGroupCreate('s', 'g', '0'), 'OK');
  assert.deepStrictEqual(only(await client.xReadGroup('g', 'c1', { key: 's', id: '>' }, { COUNT: 10 })), rows);
  assert.strictEqual(await client.xAck('s', 'g', ids[0]), 1);
  const claimed = await client.xAutoClaim('s', 'g', 'c2', 0, '0-0');
  assert.strictEqual(claimed.nextId, '0-0');
  assert.deepStrictEqual(entries(claimed.messages), [rows[1]]);
  assert.deepStrictEqual(entries(await client.xClaim('s', 'g', 'c3', 0, ids[1])), [rows[1]]);
  assert.strictEqual(await client.xAck('s', 'g', ids[1]), 1);
  assert.strictEqual((await client.xPending('s', 'g')).pending, 0);
  const [group] = await client.xInfoGroups('s');
  assert.deepStrictEqual([group.name, group.pending, group.lag], ['g', 0, 0]);
}

/** Publishes to a subscriber of a channel, a pattern and a shard channel, which hears of each once. */
async function messages(client, subscriber) {
  const got = [];
  const three = new Promise((resolve) => {
    const take = (message, channel) => got.push([channel, message]) === 3 && resolve();
    got.take = take;
  });
  await subscriber.subscribe('news', got.take);
  await subscriber.pSubscribe('n*', got.take);
  await subscriber.sSubscribe('shard', got.take);
  assert.strictEqual(await client.publish('news', 'hello'), 2);
  assert.strictEqual(await client.sPublish('shard', 'x'), 1);
  await three;
  assert.deepStrictEqual([...got], [['news', 'hello'], ['news', 'hello'], ['shard', 'x']]);
  assert.deepStrictEqual(await client.pubSubChannels(), ['news']);
  assert.ok(await subscriber.ping());
  await subscriber.unsubscribe();
  await subscriber.pUnsubscribe();
  await subscriber.sUnsubscribe();
  assert.strictEqual(await client.publish('news', 'hello'), 0);
  assert.strictEqual(await subscriber.get('k'), null);
}

main([
  ['connects with defaults', () => clients(1, {}, async (client) => {
    assert.strictEqual(await client.ping(), 'PONG');
    assert.match(await client.info('server'), /redis_version:/);
  })],
  ['produce, read, acknowledge, claim: the default protocol', () => clients(1, {}, workRound)],
  ['produce, read, acknowledge, claim: RESP2', () => clients(1, { RESP: 2 }, workRound)],
  ['produce, read, acknowledge, claim: RESP3', () => clients(1, { RESP: 3 }, workRound)],
  ['the same over a unix socket', () => clients(1, { url: undefined, socket: { path: socket } }, workRound)],
  ['a blocking read ends when an entry comes, with null when none does', () => clients(2, {}, async (client, other) => {
    await client.xGroupCreate('s', 'g', '$', { MKSTREAM: true });
    assert.strictEqual(await client.xReadGroup('g', 'c', { key: 's', id: '>' }, { BLOCK: 50 }), null);
    const reply = await wokenBy(
      () => client.xReadGroup('g', 'c', { key: 's', id: '>' }, { BLOCK: 8000 }),
      () => other.xAdd('s', '1-0', { a: 'b' }));
    assert.deepStrictEqual(only(reply), [{ id: '1-0', message: { a: 'b' } }]);
  })],
  ['commands sent together answer in order', () => clients(1, {}, async (client) => {
    const sent = Array.from({ length: 100 }, (_, n) => client.xAdd('s', `${n + 1}-0`, { n: String(n) }));
    assert.deepStrictEqual(await Promise.all(sent), Array.from({ length: 100 }, (_, n) => `${n + 1}-0`));
    await assert.rejects(client.xAdd('s', '1-0', { n: '0' }), /equal or smaller/);
  })],
  ['a transaction', () => clients(1, {}, async (client) => {
    assert.deepStrictEqual(plain(await client.multi().xAdd('s', '1-0', { a: 'b' }).xLen('s').exec()), ['1-0', 1]);
  })],
  ['publish and subscribe: RESP2', () => clients(2, { RESP: 2 }, messages)],
  ['publish and subscribe: RESP3, where the subscriber may send anything', () => clients(2, { RESP: 3 }, async (client, subscriber) => {
    await messages(client, subscriber);
    const heard = new Promise((resolve) => { subscriber.subscribe('a', resolve).then(() => client.publish('a', 'm')); });
    assert.strictEqual(await heard, 'm');
    assert.strictEqual(await subscriber.set('k', 'v'), 'OK');
    assert.strictEqual(await subscriber.get('k'), 'v');
  })],
]);
