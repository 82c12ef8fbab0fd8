import { bare } from "./bare.mjs";
import { handwritten } from "./handwritten.mjs";
import { idemkit } from "./idemkit.mjs";
import { nodeIdempotency } from "./node-idempotency.mjs";
import { powertools } from "./powertools.mjs";
import { seedDesign } from "./seed-design.mjs";

/** @type {Readonly<Record<string, import("../handlers.mjs").Variant>>} */
export const variants = {
  bare,
  handwritten,
  idemkit,
  "seed-design": seedDesign,
  "node-idempotency": nodeIdempotency,
  powertools,
};
