import { HttpError } from "./apps/index.ts";
import type { Route, Script, SuiteOnce } from "./apps/index.ts";

/** Where a handler of the suite waits for its test. */
export interface Barrier {
  readonly reached: Promise<void>;
  readonly open: Promise<void>;
  arrive(): void;
  release(): void;
}

export function barrier(): Barrier {
  let arrive = (): void => {};
  let release = (): void => {};
  const reached = new Promise<void>((resolve) => (arrive = resolve));
  const open = new Promise<void>((resolve) => (release = resolve));
  return { reached, open, arrive: () => arrive(), release: () => release() };
}

/** What the handlers of one app have seen, and where they wait. */
export interface Stage {
  /** How often each handler was called. */
  readonly runs: Map<string, number>;
  /** Bodies as the handlers saw them, in order. */
  readonly bodies: string[];
  barrier: Barrier;
  late: Promise<void>;
}

export function stage(): Stage {
  return { runs: new Map(), bodies: [], barrier: barrier(), late: Promise.resolve() };
}

/** One write of every handler, by which the tests count effects. */
export async function pay({ tx, key }: SuiteOnce, note: string): Promise<string> {
  const text = "insert into payment (key, note) values ($1, $2) returning id";
  const { rows } = await tx.query<{ id: string }>(text, [key ?? null, note]);
  return rows[0]?.id ?? "";
}

const binary = Buffer.from([0, 1, 2, 0xff, 0xfe, 0x80, 0x0d, 0x0a, 0]);
const long = "a response that is long enough to be compressed. ".repeat(20);

async function* chunks(): AsyncGenerator<string> {
  yield "first ";
  await Promise.resolve();
  yield long;
  yield " last";
}

async function* endless(): AsyncGenerator<string> {
  for (;;) yield long;
}

/** The ways in which a handler can answer; each pays once. */
export const answers: Readonly<Record<string, Script>> = {
  json: async (io, once) => io.json(201, { id: await pay(once, "json") }, { location: "/payments/1" }),
  value: async (io, once) => io.value({ id: await pay(once, "value") }),
  long: async (io, once) => io.json(200, { id: await pay(once, "long"), long }),
  "no-content": async (io, once) => {
    await pay(once, "no-content");
    return io.empty(204);
  },
  empty: async (io, once) => {
    await pay(once, "empty");
    return io.empty(202, { etag: '"v1"' });
  },
  binary: async (io, once) => {
    await pay(once, "binary");
    return io.bytes(200, "application/octet-stream", binary);
  },
  redirect: async (io, once) => io.redirect(303, `/payments/${await pay(once, "redirect")}`),
  streamed: async (io, once) => {
    await pay(once, "streamed");
    return io.stream(200, "text/plain", chunks);
  },
  "multi-value": async (io, once) => {
    await pay(once, "multi-value");
    return io.json(200, {}, { link: ["</a>; rel=prev", "</b>; rel=next"], "set-cookie": ["a=1", "b=2"] });
  },
  "bad-request": async (io, once) => io.json(400, { problem: await pay(once, "bad-request") }),
};

/** The other handlers. */
export function scenarios(on: Stage): Record<string, Route> {
  const counted = (name: string, script: Script): Script => {
    return (io, once) => {
      on.runs.set(name, (on.runs.get(name) ?? 0) + 1);
      return script(io, once);
    };
  };
  const scripts: Record<string, Script> = {
    ...answers,
    waiting: async (io, once) => {
      on.barrier.arrive();
      await on.barrier.open;
      return io.json(201, { id: await pay(once, "waiting") });
    },
    "waiting-stream": async (io, once) => {
      await pay(once, "waiting-stream");
      return io.stream(200, "text/plain", async function* waits() {
        yield "first ";
        on.barrier.arrive();
        await on.barrier.open;
        yield "last";
      });
    },
    "waits-then-streams": async (io, once) => {
      await pay(once, "waits-then-streams");
      on.barrier.arrive();
      await on.barrier.open;
      return io.stream(200, "text/plain", async function* later() {
        yield "first ";
        yield "last";
      });
    },
    refuses: async (_io, once) => {
      await pay(once, "refuses");
      throw new HttpError(422, `refused ${once.operationId}`);
    },
    throws: async (_io, once) => {
      await pay(once, "throws");
      throw statusOf(once);
    },
    "throws-text": async (_io, once) => {
      await pay(once, "throws-text");
      // oxlint-disable-next-line eslint/no-throw-literal, typescript/only-throw-error -- what this is about
      throw "text";
    },
    "not-final": async (io, once) => {
      await pay(once, "not-final");
      once.notFinal();
      return io.json(400, { error: "wrong code" });
    },
    fails: async (io, once) => io.json(502, { id: await pay(once, "fails") }),
    conflicts: async (io, once) => {
      const body = io.body as { amounts: number[] };
      on.bodies.push(JSON.stringify(body));
      body.amounts.push(99);
      await pay(once, "conflicts");
      if (on.bodies.length % 2 === 1) await once.tx.query("select serialization_failure()");
      return io.json(201, { amounts: body.amounts }, { "x-run": String(on.bodies.length) });
    },
    "fails-at-commit": async (io, once) => {
      await once.tx.query("insert into seat values (1)");
      return io.json(201, { ok: true }, { "x-handler": "yes", location: "/seats/1" });
    },
    "slow-commit": async (io, once) => {
      await once.tx.query("insert into slow values (1)");
      return io.json(201, { id: await pay(once, "slow-commit") });
    },
    "slow-commit-stream": async (io, once) => {
      await once.tx.query("insert into slow values (1)");
      await pay(once, "slow-commit-stream");
      return io.stream(200, "text/plain", chunks);
    },
    endless: async (io, once) => {
      await pay(once, "endless");
      return io.stream(200, "text/plain", endless);
    },
    "broken-stream": async (io, once) => {
      await pay(once, "broken-stream");
      return io.stream(200, "text/plain", async function* breaks() {
        yield "first";
        throw new Error("the source broke");
      });
    },
    late: async (io, once) => {
      await pay(once, "late");
      let done = (): void => {};
      on.late = new Promise((resolve) => (done = resolve));
      on.barrier.arrive();
      await on.barrier.open;
      try {
        return io.json(201, { late: true });
      } finally {
        done();
      }
    },
    free: async (io, once) => {
      const id = await pay(once, "free");
      const body = io.body as { fail?: boolean } | undefined;
      if (body?.fail === true) throw new HttpError(500, "failed");
      return io.json(201, { id, key: once.key ?? null });
    },
    secret: async (io, once) => {
      await pay(once, "secret");
      return io.json(201, {}, { "x-receipt": "42", "x-other": "1", "cache-control": "private, max-age=60" });
    },
  };
  const options: Record<string, Route["options"]> = {
    endless: { maxResponseBytes: 10_000 },
    late: { handlerTimeoutMs: 200 },
    free: { key: "optional" },
    secret: { storeHeaders: ["X-Receipt"] },
  };
  return Object.fromEntries(
    Object.entries(scripts).map(([name, script]) => {
      const chosen = options[name];
      return [name, { script: counted(name, script), ...(chosen === undefined ? {} : { options: chosen }) }];
    }),
  );
}

/** The status that a test asks for by its key, such as `403-a`. */
function statusOf({ key }: SuiteOnce): HttpError {
  return new HttpError(Number(key?.slice(0, 3)), "thrown");
}

/** Tables of the handlers. */
export const tables = `
  create table payment (id uuid primary key default gen_random_uuid(), key text, note text);
  create table seat (number int, constraint seat_number unique (number) deferrable initially deferred);
  insert into seat values (1);
  create table slow (n int);
  create function wait_at_commit() returns trigger language plpgsql as
    $$ begin perform pg_advisory_xact_lock(42); return null; end $$;
  create constraint trigger slow_commit after insert on slow deferrable initially deferred
    for each row execute function wait_at_commit();
  create function serialization_failure() returns void language plpgsql as
    $$ begin raise exception 'made by the test' using errcode = '40001'; end $$;
`;
