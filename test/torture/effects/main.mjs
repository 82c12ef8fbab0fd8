// Confirms, refunds and checkouts while the service, its rescuers and the provider are killed and paused and every call may go
// wrong. The last line is one JSON object; the exit code is 1 where something was lost, done twice or left stuck.
import { parseArgs } from "node:util";

import { fromPg } from "idemkit/pg";

import { check, resolveByHand } from "./check.mjs";
import { customerOf } from "./customer.mjs";
import { randomOf } from "./random.mjs";
import { leaseMs, openWorld, providers } from "./world.mjs";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "30" },
    seed: { type: "string", default: "1" },
    customers: { type: "string", default: "24" },
  },
});
const seconds = Number(values.seconds);
const seed = Number(values.seed);
if (!(seconds > 0) || !Number.isInteger(seed)) {
  throw new Error("npm run torture:effects -- --seconds N --seed S");
}

const random = randomOf(seed);
const kind = providers[Math.abs(seed) % providers.length] ?? providers[0];
if (kind === undefined) throw new Error("there is no provider");
const faultRate = 0.25;
const faultKinds = ["timeout-after", "timeout-before", "cut-after", "cut-before", "error", "slow", "decline"];
const world = await openWorld(kind, {
  seed,
  faultRate,
  slowMs: 300,
  faults: [...faultKinds, "die-before", "die-after"],
});
const database = fromPg(world.pool);
await world.pool.query(`
  insert into public.stock (sku, on_hand, recalled) values ('teapot', 1000000, false), ('unsafe', 1000000, true)`);

/** @type {import("./customer.mjs").Operation[]} */
const operations = [];
const endsAt = performance.now() + seconds * 1000;
const isOver = () => performance.now() > endsAt;
let faults = 0;
let resolved = 0;

async function customers() {
  const round = await customerOf(world, random, operations);
  while (!isOver()) {
    await round().catch((/** @type {unknown} */ error) => console.error("a customer failed:", error));
  }
}

/** One fault of a process at a time, and a moment of peace after it. */
async function trouble() {
  while (!isOver()) {
    await new Promise((resolve) => setTimeout(resolve, random.between(300, 1500)));
    if (isOver()) return;
    const victim = random.pick(world.services);
    faults += 1;
    if (random.chance(0.2)) await world.provider.kill();
    // A call of a paused process may arrive at any time: only keys help against that.
    else if (kind?.honoursKeys && random.chance(0.3)) await victim.pause(2 * leaseMs);
    else await victim.kill();
  }
}

/** @returns {Promise<number>} operations and sagas without an end */
async function unfinished() {
  const { rows } = await world.pool.query(`
    select (select count(*)::integer from idemkit.idempotency_record where disposition in ('running', 'uncertain'))
         + (select count(*)::integer from idemkit.saga where state in ('running', 'compensating', 'uncertain')) as left`);
  return /** @type {{ left: number }[]} */ (rows)[0]?.left ?? 0;
}

/** @returns {Promise<boolean>} whether the provider could be told */
async function behave() {
  try {
    const body = JSON.stringify({ faultRate: 0 });
    return (await fetch(`${world.provider.url}/switches`, { method: "PUT", body })).ok;
  } catch {
    return false; // it has just died of a fault
  }
}

/** From here on the provider behaves, as often as it comes back; what nobody can know is said by hand, and everything must end. */
async function settle() {
  const deadline = performance.now() + 20 * leaseMs;
  for (;;) {
    const behaves = await behave();
    if (behaves) resolved += await resolveByHand(world, database);
    const left = await unfinished();
    if ((behaves && left === 0) || performance.now() > deadline) return left;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

console.error(`the provider ${kind.name}; ${seconds} s, seed ${seed}`);
await Promise.all([...Array.from({ length: Number(values.customers) }, customers), trouble()]);
const left = await settle();
const verdict = await check(world, operations);
await world.close();
const unanswered = operations.filter(({ status }) => status === 0 || status >= 500);
const toldUncertain = operations.filter(({ code }) => code === "operation_uncertain").length;
// Where keys are honoured the same request can always be sent again.
const mayBeUncertain = !kind.honoursKeys;
for (const fault of verdict.faults) console.error(fault);
for (const { kind: what, orderId, status, code } of unanswered) console.error(what, orderId, status, code);
const result = {
  seed,
  seconds,
  provider: kind.name,
  operations: operations.length,
  faults,
  charges: verdict.charges,
  lost: verdict.lost,
  duplicated: verdict.duplicated,
  uncertain: Math.max(toldUncertain, resolved),
  resolvedByHand: resolved,
  stuck: left + unanswered.length,
  disagreements: verdict.faults.length,
};
console.log(JSON.stringify(result));
const isViolated = result.lost + result.duplicated + result.stuck + result.disagreements > 0;
process.exit(isViolated || (result.uncertain > 0 && !mayBeUncertain) ? 1 : 0);
