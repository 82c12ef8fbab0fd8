import type { Pool } from "pg";
import type { IssuerKeys } from "./issuer-keys.ts";

/** What the transcript plays on: a running service, a look into its database, and a hand on its process. */
export interface Scene {
  readonly url: string;
  /** The payment provider, with a switch for everything that can go wrong there. */
  readonly providerUrl: string;
  readonly pool: Pool;
  readonly keys: IssuerKeys;
  /** Aborted when the person at the terminal has had enough. */
  readonly stopped: AbortSignal;
  readonly say: (line: string) => void;
  /** SIGKILL of the service; settles when it is gone. */
  readonly kill: () => Promise<void>;
  /** Starts the service again after a kill. */
  readonly restart: () => Promise<void>;
}
