import { integer } from "../config.ts";
import { startProvider } from "./server.ts";
import type { Switches } from "./switches.ts";

// PROVIDER_LEDGER names the file of its books, PROVIDER_PORT where it listens, PROVIDER_SWITCHES is JSON.
const ledgerFile = process.env["PROVIDER_LEDGER"] ?? "";
if (ledgerFile === "") {
  throw new Error("PROVIDER_LEDGER must be set");
}
const switches = JSON.parse(process.env["PROVIDER_SWITCHES"] ?? "{}") as Partial<Switches>;
const port = integer(process.env, "PROVIDER_PORT", { fallback: 0, min: 0, max: 65_535 });
const provider = await startProvider({ port, ledgerFile, switches });
process.stdout.write(`Provider listening at ${provider.url}\n`);
process.send?.({ started: true, url: provider.url });

for (const event of ["SIGTERM", "SIGINT", "disconnect"]) {
  process.once(event, () => {
    void provider.stop().then(() => process.exit(0));
  });
}
