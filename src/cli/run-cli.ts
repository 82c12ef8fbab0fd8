import { parseArgs } from "node:util";

import { migrate, migrationSql } from "../index.ts";
import { fromPg } from "../pg.ts";

/** What the command line may touch of its process. */
export interface CliHost {
  readonly environment: Readonly<Record<string, string | undefined>>;
  write(text: string): void;
  complain(text: string): void;
}

const usage = `usage: idemkit <command> [options]

commands
  migrate            create idemkit's tables, or bring them up to this version
  migrate --print    print the SQL instead of running it

options
  --database-url URL   the database; default: the variable DATABASE_URL
  --schema NAME        the schema of idemkit's tables; default: idemkit
  --help               this text
`;

/** Runs one command and returns its exit code: 0 done, 1 failed, 2 called wrongly. */
export async function runCli(given: readonly string[], host: CliHost): Promise<number> {
  try {
    const { values, positionals } = parse(given);
    if (values.help) return say(host, usage);
    if (positionals.length !== 1 || positionals[0] !== "migrate") {
      return misused(host, "give one command: migrate");
    }
    if (values.print) return say(host, migrationSql(values.schema));
    const url = values["database-url"] ?? host.environment["DATABASE_URL"];
    if (url === undefined || url === "") return misused(host, "give --database-url, or set DATABASE_URL");
    return say(host, await migrated(url, values.schema));
  } catch (error) {
    const misuse =
      error instanceof TypeError && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS");
    if (misuse) return misused(host, error.message);
    host.complain(`idemkit: ${reasons(error).join(": ")}\n`);
    return 1;
  }
}

/** The messages of an error and of its causes: "could not be reached" alone tells an operator little. */
function reasons(error: unknown): readonly string[] {
  if (error instanceof AggregateError) return error.errors.flatMap(reasons);
  if (!(error instanceof Error)) return [String(error)];
  return [error.message, ...(error.cause === undefined ? [] : reasons(error.cause))];
}

interface Parsed {
  readonly values: {
    readonly "database-url"?: string | undefined;
    readonly schema: string;
    readonly print: boolean;
    readonly help: boolean;
  };
  readonly positionals: readonly string[];
}

function parse(given: readonly string[]): Parsed {
  return parseArgs({
    args: [...given],
    allowPositionals: true,
    options: {
      "database-url": { type: "string" },
      schema: { type: "string", default: "idemkit" },
      print: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
}

async function migrated(connectionString: string, schema: string): Promise<string> {
  const { default: pg } = await loadPg();
  const pool = new pg.Pool({ connectionString, max: 1, connectionTimeoutMillis: 10_000 });
  try {
    const { applied } = await migrate(fromPg(pool, { schema }));
    const what = applied.length === 0 ? "nothing to do" : `applied migrations ${applied.join(", ")}`;
    return `idemkit: schema ${schema}: ${what}\n`;
  } finally {
    await pool.end();
  }
}

async function loadPg(): Promise<typeof import("pg")> {
  try {
    return await import("pg");
  } catch (cause) {
    throw new Error("the command line needs the package pg: npm install pg", { cause });
  }
}

function say(host: CliHost, text: string): number {
  host.write(text);
  return 0;
}

function misused(host: CliHost, why: string): number {
  host.complain(`idemkit: ${why}\n\n${usage}`);
  return 2;
}
