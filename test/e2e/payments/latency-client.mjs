// Sends one charge for each line of its input and prints how long it took: in a process of its own, because a client
// that is busy with a storm would measure itself.
import { createInterface } from "node:readline";

/** @typedef {{ url: string, token: string, key: string, body: unknown }} Line */

for await (const line of createInterface({ input: process.stdin })) {
  const { url, token, key, body } = /** @type {Line} */ (JSON.parse(line));
  const headers = {
    authorization: `Bearer ${token}`,
    "idempotency-key": key,
    "content-type": "application/json",
  };
  const begun = performance.now();
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  await response.text();
  console.log(`${key} ${response.status} ${performance.now() - begun}`);
}
