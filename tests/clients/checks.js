// What the JavaScript test programs share: named checks, one after the other, and a count in the last line.
'use strict';

const assert = require('node:assert');

/** Runs `[name, async function]` pairs; exit code 0 only if all pass. A check that hangs fails after 15 s. */
async function main(checks) {
  let failed = 0;
  for (const [name, run] of checks) {
    let timer;
    const patience = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('no end within 15 s')), 15000);
    });
    try {
      await Promise.race([run(), patience]);
      console.log(`ok   ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${name}\n${error.stack}`);
    } finally {
      clearTimeout(timer);
    }
  }
  console.log(`${checks.length - failed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}

/** Resolves after some milliseconds. */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The reply of a blocking read that must come soon after `trigger` is called, not at once and not at the end. */
async function wokenBy(read, trigger) {
  let early = true;
  const reply = read().then((value) => {
    assert.ok(!early, 'a reply before there was anything to read');
    return value;
  });
  await sleep(150);
  early = false;
  const from = Date.now();
  await trigger();
  const value = await reply;
  assert.ok(Date.now() - from < 2000, `woken after ${Date.now() - from} ms`);
  return value;
}

module.exports = { main, sleep, wokenBy };
