import { integer } from "../config.ts";
import { readIssuerKeys } from "./issuer-keys.ts";
import { dataFolder } from "./places.ts";

const HEALTH_TIMEOUT_MS = 2000;

const isPayments = async (port: number): Promise<boolean> => {
  try {
    const signal = AbortSignal.timeout(HEALTH_TIMEOUT_MS);
    const response = await fetch(`http://127.0.0.1:${port}/health`, { signal });
    return ((await response.json()) as { service?: unknown }).service === "payments";
  } catch {
    return false;
  }
};

/** Prints a bearer token for the service that `npm start` runs on `PORT`. */
const main = async ([sub, ...roles]: readonly string[]): Promise<string> => {
  const port = integer(process.env, "PORT", { fallback: 3000, min: 1, max: 65_535 });
  if (sub === undefined || sub === "") {
    throw new Error(
      "usage: npm run --silent token -- SUB [ROLE...]   (roles: customer, admin; default customer)",
    );
  }
  const keys = await readIssuerKeys(dataFolder(port));
  if (keys === undefined || !(await isPayments(port))) {
    throw new Error(
      `no payments service answers on port ${port}: run npm start, or set PORT to the port of one`,
    );
  }
  return keys.sign(sub, roles.length > 0 ? roles : ["customer"]);
};

try {
  process.stdout.write(`${await main(process.argv.slice(2))}\n`);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
