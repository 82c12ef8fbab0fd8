import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pool } from "pg";
import { migratePayments } from "../../../services/payments/src/adapters/out/postgres/migrate.ts";
import { AUDIENCE, ISSUER, openIssuerKeys } from "../../../services/payments/src/dev/issuer-keys.ts";
import { startIssuer } from "../../../services/payments/src/dev/issuer.ts";
import { createDatabase, spawnProcess } from "../../support/index.ts";
import type { TestDatabase, TestProcess } from "../../support/index.ts";

/** One running process of the payments service. */
export interface Replica {
  readonly url: string;
  readonly process: TestProcess;
}

export interface ReplicaOptions {
  readonly poolSize?: number;
  /** The production entry, or one of a test's own. */
  readonly script?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A database with all tables, an issuer, and as many service processes as a test wants. */
export interface Stage {
  readonly database: TestDatabase;
  /** The test's own look into the database. */
  readonly pool: Pool;
  token(sub: string, roles?: readonly string[]): Promise<string>;
  startReplica(options?: ReplicaOptions): Promise<Replica>;
  close(): Promise<void>;
}

export const openStage = async (open: () => Promise<TestDatabase> = createDatabase): Promise<Stage> => {
  const database = await open();
  const pool = database.pool({ max: 20 });
  await migratePayments(pool);
  const folder = await mkdtemp(join(tmpdir(), "payments-issuer-"));
  const keys = await openIssuerKeys(folder);
  const issuer = await startIssuer(keys.publicKey);
  const replicas: TestProcess[] = [];

  const startReplica: Stage["startReplica"] = async ({ poolSize = 10, script, env = {} } = {}) => {
    const replica = spawnProcess(script ?? "services/payments/dist/main.js", {
      env: {
        DATABASE_URL: database.connectionString,
        PORT: "0",
        ISSUER,
        AUDIENCE,
        JWKS_URL: issuer.jwksUrl,
        POOL_SIZE: String(poolSize),
        LOG_LEVEL: "info",
        ...env,
      },
    });
    replicas.push(replica);
    const [, url = ""] = await replica.waitForLine(/Server listening at (http:\/\/[\d.:]+)/u);
    return { url, process: replica };
  };

  const close = async (): Promise<void> => {
    await Promise.all(replicas.map((replica) => replica.kill("SIGKILL")));
    await issuer.stop();
    await database.drop();
    await rm(folder, { recursive: true, force: true });
  };
  const token: Stage["token"] = (sub, roles = ["customer"]) => keys.sign(sub, roles);
  return { database, pool, token, startReplica, close };
};

/** A name that no other test uses. */
export const unique = (prefix: string): string => `${prefix}-${randomUUID().slice(0, 8)}`;
