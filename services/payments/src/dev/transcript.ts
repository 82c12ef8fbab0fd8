import { randomUUID } from "node:crypto";
import { rowsOf } from "./counts.ts";
import { newCharge, newCustomer } from "./customer.ts";
import type { Answer, Customer } from "./customer.ts";
import { describe } from "./describe.ts";
import type { EventProcesses } from "./event-processes.ts";
import { showEvents } from "./events.ts";
import { killInTheMiddle } from "./kill-in-the-middle.ts";
import { lostAnswer, nobodyKnows } from "./provider-faults.ts";
import { storm } from "./storm.ts";
import type { Scene } from "./scene.ts";

/** Real calls against the running service; every figure is what came back or what the database holds. */
export const runTranscript = async (scene: Scene, events: EventProcesses): Promise<void> => {
  const customer = await newCustomer(scene, `demo-${randomUUID().slice(0, 8)}`);
  await simpleCalls(scene, customer);
  await storm(scene, customer);
  await killInTheMiddle(scene, customer);
  await lostAnswer(scene, customer);
  await nobodyKnows(scene, customer);
  await showEvents(scene, customer, events);
};

const simpleCalls = async (scene: Scene, customer: Customer): Promise<void> => {
  const charge = await newCharge(customer, "first");
  const show = async (what: string, answer: Answer, note = ""): Promise<Answer> => {
    scene.say(`\n${what}`);
    scene.say(`  ${describe(answer)}${note}`);
    scene.say(`  ${await rowsOf(scene.pool, customer.sub)}`);
    return answer;
  };
  const key = `charge-first-${customer.sub}`;
  const first = await show("First call: POST /payments", await customer.post("/payments", charge, key));
  const again = await customer.post("/payments", charge, key);
  const equal = again.status === first.status && again.text === first.text;
  await show("The same again", again, `  same status and bytes as the first: ${equal ? "yes" : "no"}`);
  const other = { ...charge, amount: "20.00" };
  await show("The same key with another body", await customer.post("/payments", other, key));
  await show("No key", await customer.post("/payments", charge));
};
