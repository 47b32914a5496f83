// ioredis with its defaults: produce, read, acknowledge, claim; blocking reads, pipelines, transactions.
//
// usage: node ioredis.js PORT SOCKET
'use strict';

const assert = require('node:assert');
const Redis = require('ioredis');
const { main, wokenBy } = require('./checks.js');

const [port, socket] = process.argv.slice(2);

/** Runs with clients that are closed at the end, whatever happens. */
async function clients(count, run, ...options) {
  const opened = Array.from({ length: count }, () => new Redis(...(options.length ? options : [Number(port)])));
  try {
    await opened[0].flushall();
    await run(...opened);
  } finally {
    opened.forEach((client) => client.disconnect());
  }
}

async function workRound(client) {
  const ids = [await client.xadd('s', '*', 'n', 0), await client.xadd('s', '*', 'n', 1)];
  assert.strictEqual(await client.xgroup('CREATE', 's', 'g', '0'), 'OK');
  const rows = [[ids[0], ['n', '0']], [ids[1], ['n', '1']]];
  const reply = await client.xreadgroup('GROUP', 'g', 'c1', 'COUNT', 10, 'STREAMS', 's', '>');
  assert.deepStrictEqual(reply, [['s', rows]]);
  assert.strictEqual(await client.xack('s', 'g', ids[0]), 1);
  assert.deepStrictEqual(await client.xautoclaim('s', 'g', 'c2', 0, '0-0'), ['0-0', [rows[1]], []]);
  assert.deepStrictEqual(await client.xclaim('s', 'g', 'c3', 0, ids[1]), [rows[1]]);
  assert.strictEqual(await client.xack('s', 'g', ids[1]), 1);
  assert.deepStrictEqual(await client.xpending('s', 'g'), [0, null, null, null]);
}

main([
  ['connects with defaults', () => clients(1, async (client) => {
    assert.strictEqual(await client.ping(), 'PONG');
    assert.match(await client.info('server'), /redis_version:/);
  })],
  ['produce, read, acknowledge, claim', () => clients(1, workRound)],
  ['the same over a unix socket', () => clients(1, workRound, socket)],
  ['a blocking read ends when an entry comes, with null when none does', () => clients(2, async (client, other) => {
    await client.xgroup('CREATE', 's', 'g', '$', 'MKSTREAM');
    assert.strictEqual(await client.xreadgroup('GROUP', 'g', 'c', 'BLOCK', 50, 'STREAMS', 's', '>'), null);
    const reply = await wokenBy(
      () => client.xreadgroup('GROUP', 'g', 'c', 'BLOCK', 8000, 'STREAMS', 's', '>'),
      () => other.xadd('s', '1-0', 'a', 'b'));
    assert.deepStrictEqual(reply, [['s', [['1-0', ['a', 'b']]]]]);
  })],
  ['a pipeline answers in order, errors in their places', () => clients(1, async (client) => {
    const pipeline = client.pipeline();
    for (let n = 1; n <= 100; n += 1) pipeline.xadd('s', `${n}-0`, 'n', n);
    pipeline.xadd('s', '1-0', 'n', 0).xlen('s');
    const replies = await pipeline.exec();
    assert.deepStrictEqual(replies.slice(0, 100).map(([, id]) => id), Array.from({ length: 100 }, (_, n) => `${n + 1}-0`));
    assert.match(replies[100][0].message, /equal or smaller/);
    assert.strictEqual(replies[101][1], 100);
  })],
  ['a transaction', () => clients(1, async (client) => {
    assert.deepStrictEqual(await client.multi().xadd('s', '1-0', 'a', 'b').xlen('s').exec(), [[null, '1-0'], [null, 1]]);
  })],
  ['publish and subscribe', () => clients(2, async (client, subscriber) => {
    const got = [];
    const three = new Promise((resolve) => {
      const take = (...message) => got.push(message) === 3 && resolve();
      subscriber.on('message', take);
      subscriber.on('pmessage', take);
    });
    assert.strictEqual(await subscriber.subscribe('news', 'other'), 2);
    assert.strictEqual(await subscriber.psubscribe('n*'), 3);
    assert.strictEqual(await client.publish('news', 'hello'), 2);
    assert.strictEqual(await client.publish('nobody', 'x'), 1);
    await three;
    assert.deepStrictEqual(got, [['news', 'hello'], ['n*', 'news', 'hello'], ['n*', 'nobody', 'x']]);
    assert.ok(await subscriber.ping());
    // By name: with a bare UNSUBSCRIBE of several, ioredis 6 loses its place in the replies, whatever the server.
    assert.strictEqual(await subscriber.unsubscribe('news', 'other'), 1);
    assert.strictEqual(await subscriber.punsubscribe('n*'), 0);
    assert.strictEqual(await client.publish('news', 'hello'), 0);
    assert.strictEqual(await subscriber.get('k'), null);
  })],
]);
