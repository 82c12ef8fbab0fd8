import { prefixOf } from "./measure.mjs";

/** @typedef {import("./bench.mjs").Bench} Bench */

/**
 * What became of the effects of one variant.
 * @typedef {object} Effects
 * @property {number} lost acknowledged commands without an effect
 * @property {number} twice effects beyond the first of a command
 * @property {number} raced of those, from copies sent at the same moment
 * @property {number} different raced commands whose copies got different answers
 * @property {number} afterCrash of those, from retries after a crash of the database server
 */

const race = { commands: 100, copies: 4 };

/** So many of the latest commands are sent again after the crash. */
const retried = 100;

/**
 * @param {Bench} bench
 * @param {string} variant
 * @param {string} prefix
 */
async function countEffects({ connectTo }, variant, prefix) {
  const client = await connectTo(variant);
  try {
    const { rows } = await client.query(
      "select count(*) as total, count(distinct idempotency_key) as keys from payment where idempotency_key like $1",
      [`%-${prefix}-%`],
    );
    const [{ total, keys }] = rows;
    return { keys: Number(keys), twice: Number(total) - Number(keys) };
  } finally {
    await client.end();
  }
}

/**
 * Dead tuples of a variant's database. Its connections are ended first: a backend reports what it did at its end.
 * @param {Bench} bench
 * @param {string} variant
 */
export async function deadTuples({ admin, connectTo }, variant) {
  const client = await connectTo(variant);
  try {
    await admin.query(
      "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1 and pid <> $2",
      [client.database, (await client.query("select pg_backend_pid() as pid")).rows[0].pid],
    );
    const { rows } = await client.query("select sum(n_dead_tup) as dead from pg_stat_user_tables");
    return Number(rows[0].dead);
  } finally {
    await client.end();
  }
}

/**
 * Copies of a command at the same moment: how many effects, and whether all copies get the same answer.
 * @param {Bench} bench
 * @param {string} variant
 */
export async function raceCopies(bench, variant) {
  const port = await bench.serverOf({ variant, kind: "new" }).call("port");
  const prefix = prefixOf(variant, "race");
  const { acknowledged, different } = await bench.load.call("race", {
    port,
    path: "/one",
    prefix,
    first: 0,
    ...race,
  });
  const { keys, twice } = await countEffects(bench, variant, prefix);
  return { lost: Math.max(0, acknowledged - keys), twice, different };
}

/**
 * After a crash of the server: what was acknowledged must be there, and retries must not run again.
 * @param {Bench} bench
 * @param {string} variant
 * @param {import("./measure.mjs").Measure} measure
 */
export async function afterCrash(bench, variant, { counts }) {
  const sum = { lost: 0, twice: 0, afterCrash: 0 };
  for (const handler of ["one", "five"]) {
    const prefix = prefixOf(variant, handler);
    const count = counts.get(prefix);
    if (count === undefined) continue;
    const { keys, twice } = await countEffects(bench, variant, prefix);
    sum.lost += Math.max(0, count.acknowledged - keys);
    sum.twice += twice;
    if (handler === "five") continue;
    const port = await bench.serverOf({ variant, kind: "new" }).call("port");
    const first = Math.max(0, count.sent - retried);
    await bench.load.call("race", {
      port,
      path: `/${handler}`,
      prefix,
      first,
      commands: count.sent - first,
      copies: 1,
    });
    sum.afterCrash = (await countEffects(bench, variant, prefix)).twice - twice;
  }
  return sum;
}
