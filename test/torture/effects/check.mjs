import { resolveEffect, resolveSagaStep } from "idemkit";

// Compares what customers were told, what the service has, and what the provider's own books say.

/** @typedef {{ kind: "charge" | "refund", id: string, reference: string, amount: string }} Entry */
/** @typedef {{ id: string, order_id: string, status: string, external: string | null, operation: string, saga: string | null, intended: boolean }} Payment */
/** @typedef {{ id: string, order_id: string, status: string, external: string | null }} Refund */

/** @typedef {{ saga_id: string, step_name: string, direction: "action" | "compensation", derived_key: string }} OpenStep */

/**
 * @typedef {object} Verdict
 * @property {number} charges
 * @property {number} lost somebody was told that it happened, and the books don't have it
 * @property {number} duplicated the books have it more than once
 * @property {string[]} faults in words
 */

/**
 * @param {import("./world.mjs").World} world
 * @param {readonly import("./customer.mjs").Operation[]} operations
 * @returns {Promise<Verdict>}
 */
export async function check({ pool, provider }, operations) {
  const ledger = /** @type {Entry[]} */ (await (await fetch(`${provider.url}/ledger`)).json());
  const charges = ledger.filter(({ kind }) => kind === "charge");
  const refundsOf = byReference(ledger.filter(({ kind }) => kind === "refund"));
  const chargesOf = byReference(charges);
  const { rows: payments } = /** @type {{ rows: Payment[] }} */ (
    await pool.query(`
      select p.id, p.order_id, p.status, p.external_payment_id as external, s.state as saga
      from public.payment p left join idemkit.saga s on p.operation = 'checkout' and s.saga_id::text = p.idempotency_key`)
  );
  const { rows: refunds } = /** @type {{ rows: Refund[] }} */ (
    await pool.query("select id, order_id, status, external_refund_id as external from public.refund")
  );
  const refundIds = new Set(ledger.filter(({ kind }) => kind === "refund").map(({ id }) => id));
  /** @type {Verdict} */
  const verdict = { charges: charges.length, lost: 0, duplicated: 0, faults: [] };
  const { faults } = verdict;
  for (const { id, status, external, saga } of payments) {
    const own = chargesOf.get(id) ?? [];
    verdict.duplicated += Math.max(0, own.length - 1);
    if (status === "paid" && own[0]?.id !== external) verdict.lost += 1;
    if (status === "declined" && own.length > 0) faults.push(`${id} was declined and charged`);
    if (status === "charging") faults.push(`${id} is not settled`);
    const back = own.flatMap((charge) => refundsOf.get(charge.id) ?? []);
    if (status === "reversed" && back.length !== own.length) {
      faults.push(`${id} was reversed and not refunded`);
    }
    if (saga === "committed" && back.length > 0) faults.push(`${id} was checked out and refunded`);
    const isTooMuch = back.reduce((sum, { amount }) => sum + Number(amount), 0) > 21 * own.length + 0.00001;
    if (isTooMuch) faults.push(`${id} was refunded beyond its charge`);
  }
  const settled = refunds.filter(({ status }) => status === "refunded");
  verdict.lost += settled.filter(({ external }) => external === null || !refundIds.has(external)).length;
  const reversals = payments
    .filter(({ status }) => status === "reversed")
    .flatMap(({ id }) => chargesOf.get(id) ?? []);
  const expected = settled.length + reversals.length;
  verdict.duplicated += Math.max(0, refundIds.size - expected);
  if (refunds.some(({ status }) => status === "reserved")) faults.push("a refund is not settled");
  verdict.lost += told(operations, payments, settled);
  faults.push(...(await stockFaults(pool)));
  return verdict;
}

/**
 * @param {readonly Entry[]} entries
 * @returns {ReadonlyMap<string, readonly Entry[]>}
 */
function byReference(entries) {
  /** @type {Map<string, Entry[]>} */
  const grouped = new Map();
  for (const entry of entries) grouped.set(entry.reference, [...(grouped.get(entry.reference) ?? []), entry]);
  return grouped;
}

/**
 * Who was told 200 has a payment that is paid; refunds told of are there.
 * @param {readonly import("./customer.mjs").Operation[]} operations
 * @param {readonly Payment[]} payments
 * @param {readonly Refund[]} refunds
 */
function told(operations, payments, refunds) {
  const paid = new Set(payments.filter(({ status }) => status === "paid").map((payment) => payment.order_id));
  const confirmed = operations.filter(({ kind, status }) => kind === "confirm" && status === 200);
  const lost = confirmed.filter(({ orderId }) => !paid.has(orderId)).length;
  const refunded = operations.filter(({ kind, status }) => kind === "refund" && status === 200).length;
  return lost + Math.max(0, refunded - refunds.length);
}

/**
 * @param {import("pg").Pool} pool
 * @returns {Promise<string[]>}
 */
async function stockFaults(pool) {
  const { rows } = await pool.query(`
    select s.sku, s.reserved, 1000000 - s.on_hand as sold,
      (select coalesce(sum(i.quantity), 0)::integer from idemkit.saga g
       join public.checkout c on c.id = g.saga_id join public.order_item i on i.order_id = c.order_id
       where g.state = 'committed' and i.sku = s.sku) as confirmed
    from public.stock s`);
  return rows
    .filter(({ reserved, sold, confirmed }) => reserved !== 0 || sold !== confirmed)
    .map(
      ({ sku, reserved, sold, confirmed }) =>
        `${sku}: ${reserved} reserved, ${sold} sold, ${confirmed} confirmed`,
    );
}

/**
 * Says of every uncertain call what the provider's books have; that is what a person would do.
 * @param {import("./world.mjs").World} world
 * @param {import("idemkit").PostgresDatabase<unknown>} database
 * @returns {Promise<number>} how many there were
 */
export async function resolveByHand({ pool, provider }, database) {
  const ledger = /** @type {(Entry & { key: string })[]} */ (
    await (await fetch(`${provider.url}/ledger`)).json()
  );
  const booked = new Map(ledger.map((entry) => [`${entry.kind} ${entry.key}`, entry]));
  const { rows: effects } =
    /** @type {{ rows: { operation_id: string, name: string, derived_key: string }[] }} */ (
      await pool.query(`
    select e.operation_id, e.name, e.derived_key from idemkit.effect e join idemkit.idempotency_record r using (operation_id)
    where r.disposition = 'uncertain' and e.state = 'intent'`)
    );
  for (const { operation_id: id, name, derived_key: key } of effects) {
    const entry = booked.get(`${name} ${key}`);
    const as =
      entry === undefined
        ? { as: /** @type {const} */ ("absent") }
        : { as: /** @type {const} */ ("done"), result: { id: entry.id } };
    await resolveEffect(database, id, { effect: name, ...as });
  }
  const { rows: steps } = /** @type {{ rows: OpenStep[] }} */ (
    await pool.query(`
    select s.saga_id, t.step_name, t.direction, t.derived_key from idemkit.saga s join idemkit.saga_step t using (saga_id)
    where s.state = 'uncertain' and t.state = 'intent'`)
  );
  for (const { saga_id: id, step_name: stepName, direction, derived_key: key } of steps) {
    const entry = booked.get(`${direction === "action" ? "charge" : "refund"} ${key}`);
    const as =
      entry === undefined
        ? { as: /** @type {const} */ ("absent") }
        : { as: /** @type {const} */ ("done"), result: { id: entry.id } };
    await resolveSagaStep(database, id, { stepName, direction, ...as });
  }
  return effects.length + steps.length;
}
