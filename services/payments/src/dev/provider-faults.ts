import { resolveEffect } from "idemkit";
import { fromPg } from "idemkit/pg";
import type { LedgerEntry } from "../provider/ledger.ts";
import type { Switches } from "../provider/switches.ts";
import { newCharge } from "./customer.ts";
import type { Answer, Customer } from "./customer.ts";
import { describe } from "./describe.ts";
import type { Scene } from "./scene.ts";

/** The provider charges and never answers: the service asks it what became of the call, and no second charge follows. */
export const lostAnswer = async (scene: Scene, customer: Customer): Promise<void> => {
  scene.say("\nA confirm whose provider times out after charging");
  await turn(scene, { next: ["timeout-after"] });
  const { orderId, confirm } = await newConfirm(customer, "lost");
  scene.say(`  ${describe(await confirm())}`);
  scene.say(`  ${describe(await confirm())}`);
  scene.say(`  ${await chargesOf(scene, orderId)}`);
};

/** It can't be asked either: the service says so instead of guessing, until a person who has looked says what happened. */
export const nobodyKnows = async (scene: Scene, customer: Customer): Promise<void> => {
  scene.say("\nThe same, and the provider can't be asked");
  await turn(scene, { next: ["timeout-after"], lookUp: false, honoursKeys: false });
  const { orderId, confirm } = await newConfirm(customer, "uncertain");
  const told = await confirm();
  scene.say(`  ${describe(told)}`);
  scene.say(`  ${describe(await confirm())}`);
  scene.say(`  ${await chargesOf(scene, orderId)}`);
  const [charge] = await ledgerOf(scene, orderId);
  const { operation_id: operationId } = JSON.parse(told.text) as { readonly operation_id: string };
  await resolveEffect(fromPg(scene.pool), operationId, {
    effect: "charge",
    as: "done",
    result: { id: charge?.id },
  });
  scene.say("  somebody has looked at the provider's books and resolves it as done:");
  scene.say(`  ${describe(await confirm())}`);
  scene.say(`  ${await chargesOf(scene, orderId)}`);
  await turn(scene, { lookUp: true, honoursKeys: true });
};

const newConfirm = async (
  customer: Customer,
  name: string,
): Promise<{ readonly orderId: string; readonly confirm: () => Promise<Answer> }> => {
  const { orderId = "" } = await newCharge(customer, name);
  const key = `confirm-${name}-${customer.sub}`;
  return { orderId, confirm: () => customer.post(`/orders/${orderId}/payment/confirm`, {}, key) };
};

const turn = async ({ providerUrl, stopped }: Scene, switches: Partial<Switches>): Promise<void> => {
  const body = JSON.stringify(switches);
  await fetch(`${providerUrl}/switches`, { method: "PUT", body, signal: stopped });
};

/** The provider's own entries of the order. */
const ledgerOf = async ({ providerUrl, pool, stopped }: Scene, orderId: string): Promise<LedgerEntry[]> => {
  const response = await fetch(`${providerUrl}/ledger`, { signal: stopped });
  const entries = (await response.json()) as LedgerEntry[];
  const { rows } = await pool.query<{ id: string }>({
    text: "select id from public.payment where order_id = $1",
    values: [orderId],
  });
  return entries.filter(({ reference }) => rows.some(({ id }) => id === reference));
};

const chargesOf = async (scene: Scene, orderId: string): Promise<string> =>
  `the provider's own ledger: ${(await ledgerOf(scene, orderId)).length} charge`;
