import { expressFive, expressFour } from "./express-app.ts";
import { fastify5 } from "./fastify-app.ts";
import type { Framework } from "./framework.ts";
import { nodeHttp } from "./node-app.ts";
import { fetchStyle, hono } from "./web-apps.ts";

/** The one suite runs over all of these. */
export const frameworks: readonly Framework[] = [
  fastify5,
  expressFive,
  expressFour,
  hono,
  fetchStyle,
  nodeHttp,
];
export { HttpError } from "./framework.ts";
export type { App, Framework, Route, Script, SuiteOnce } from "./framework.ts";
