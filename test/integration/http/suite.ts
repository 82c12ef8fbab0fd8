import type { PostgresDatabase } from "idemkit";
import type { OutcomeEvent } from "idemkit/http";
import { fromPg } from "idemkit/pg";
import type { Pool, PoolClient } from "pg";
import { afterAll, beforeAll, beforeEach, describe } from "vitest";

import { createDatabase } from "../../support/index.ts";
import type { TestDatabase } from "../../support/index.ts";
import { frameworks } from "./apps/index.ts";
import type { App, Framework } from "./apps/index.ts";
import { call } from "./client.ts";
import type { Answer, CallOptions } from "./client.ts";
import { barrier, scenarios, stage, tables } from "./scenarios.ts";
import type { Stage } from "./scenarios.ts";

/** What the tests of one framework work with. */
export interface Suite {
  readonly framework: Framework;
  /** What the handlers have seen, and where they wait; a fresh barrier for each test. */
  readonly on: Stage;
  /** What `onOutcome` was told in this test. */
  readonly events: OutcomeEvent[];
  pool(): Pool;
  connectionString(): string;
  database(): PostgresDatabase<PoolClient>;
  url(): string;
  newKey(prefix?: string): string;
  post(name: string, options: CallOptions): Promise<Answer>;
  /** How many payments handlers have made under a key. */
  payments(key: string): Promise<number>;
  recordOf(key: string): Promise<Record<string, unknown> | undefined>;
}

let keys = 0;
/** A key that no test has used. */
export function newKey(prefix = "key"): string {
  keys += 1;
  return `${prefix}-${keys}`;
}

/** Runs the tests over every framework, each with a database and a server of its own. */
export function overFrameworks(define: (suite: Suite) => void): void {
  describe.each(frameworks)("$name", (framework) => {
    let db: TestDatabase;
    let pool: Pool;
    let database: PostgresDatabase<PoolClient>;
    let app: App;
    const on = stage();
    const events: OutcomeEvent[] = [];

    beforeAll(async () => {
      db = await createDatabase();
      pool = db.pool({ max: 5 });
      await pool.query(tables);
      database = fromPg(pool);
      app = await framework.start(scenarios(on), { database, onOutcome: (event) => events.push(event) });
    });
    beforeEach(() => {
      on.barrier = barrier();
      events.length = 0;
    });
    afterAll(async () => {
      await app.close();
      await db.drop();
    });

    define({
      framework,
      on,
      events,
      pool: () => pool,
      connectionString: () => db.connectionString,
      database: () => database,
      url: () => app.url,
      newKey,
      post: (name, options) => call(`${app.url}/${name}`, options),
      payments: async (key) => {
        const { rows } = await pool.query("select 1 from payment where key = $1", [key]);
        return rows.length;
      },
      recordOf: async (key) => {
        const { rows } = await pool.query("select * from idemkit.idempotency_record where key = $1", [key]);
        return rows[0] as Record<string, unknown> | undefined;
      },
    });
  });
}
