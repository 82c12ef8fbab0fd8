import { listUnfinished } from "idemkit";
import { fromPg } from "idemkit/pg";
import type { EffectCrashPoint } from "idemkit/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { ask, fault } from "../e2e/payments/client.ts";
import type { Answer, Call } from "../e2e/payments/client.ts";
import { persist } from "../e2e/payments/persist.ts";
import { movementsOf, newBuyer, shortTimes, startProviderProcess } from "../e2e/payments/provider-stage.ts";
import type { ProviderProcess } from "../e2e/payments/provider-stage.ts";
import { openStage, unique } from "../e2e/payments/stage.ts";
import type { Replica, Stage } from "../e2e/payments/stage.ts";
import { until } from "../support/index.ts";

const script = "test/crash/fixtures/crashing-provider-service.mjs";
/** One lease, the rescuer's pause, the client's own pauses, and a busy machine. */
const soonMs = Number(shortTimes.LEASE_MS) + 7000;

let stage: Stage;
/** A database of its own: the rescuers of the others would go on with its operations, at their provider. */
let blindStage: Stage;
let provider: ProviderProcess;
let blind: ProviderProcess;
let steady: Replica;
let blindSteady: Replica;

beforeAll(async () => {
  stage = await openStage();
  blindStage = await openStage();
  provider = await startProviderProcess();
  blind = await startProviderProcess({ honoursKeys: false, lookUp: false });
  steady = await stage.startReplica({ env: settingsOf("honest") });
  blindSteady = await blindStage.startReplica({ env: { ...settingsOf("blind"), BACKGROUND: "off" } });
});
afterAll(async () => {
  await Promise.all([provider.close(), blind.close()]);
  await Promise.all([stage.close(), blindStage.close()]);
});

/** The provider is one that honours keys and can be asked, or one that does neither. */
type Kind = "honest" | "blind";

function stageOf(kind: Kind): Stage {
  return kind === "honest" ? stage : blindStage;
}

function settingsOf(kind: Kind): Record<string, string> {
  if (kind === "honest") return { ...shortTimes, PROVIDER_URL: provider.url };
  return { ...shortTimes, PROVIDER_URL: blind.url, PROVIDER_HONOURS_KEYS: "false" };
}

function victim(env: Record<string, string>, kind: Kind = "honest"): Promise<Replica> {
  return stageOf(kind).startReplica({
    script,
    poolSize: 3,
    env: { ...settingsOf(kind), BACKGROUND: "off", ...env },
  });
}

interface Command {
  readonly kind: Kind;
  readonly sub: string;
  readonly orderId: string;
  readonly path: string;
  readonly call: Call;
}

type Operation = "confirm" | "refund";

async function commandOf(operation: Operation, kind: Kind = "honest"): Promise<Command> {
  const { url } = kind === "honest" ? steady : blindSteady;
  const { sub, token, orderId } = await newBuyer(stageOf(kind), url);
  const path = `/orders/${orderId}/payment/confirm`;
  const confirm = { kind, sub, orderId, path, call: { method: "POST", token, key: unique("key") } };
  if (operation === "confirm") return confirm;
  const confirmed = await ask(steady.url + confirm.path, confirm.call);
  expect(confirmed.status).toBe(200);
  return {
    ...confirm,
    path: `/orders/${orderId}/refund`,
    call: { ...confirm.call, body: { amount: "5.00" } },
  };
}

/** Charges and refunds of the order, which must be one of each kind that was asked for. */
async function moved({ kind: of, orderId }: Command): Promise<string[]> {
  const entries = await movementsOf(stageOf(of), of === "honest" ? provider : blind, orderId);
  return entries.map(({ kind }) => kind);
}

const once = { confirm: ["charge"], refund: ["charge", "refund"] } as const;

/** The first final answer, and three repeats that must be the same. */
async function retried({ path, call }: Command): Promise<Answer> {
  const { final } = await persist(steady.url + path, call, { timeoutMs: soonMs, patience: 0.3 });
  for (let again = 0; again < 3; again += 1) {
    expect((await ask(steady.url + path, call)).text).toBe(final.text);
  }
  return final;
}

async function nothingIsLeft({ sub }: Command): Promise<boolean> {
  const left = await listUnfinished(fromPg(stage.pool), { states: ["running"] });
  return left.every(({ scope }) => scope !== sub);
}

const points = (["claim", "phase", "intent", "result", "completion"] as const).flatMap((step) => [
  `before-${step}` as const,
  `after-${step}` as const,
]);

describe.each(["confirm", "refund"] as const)("a %s", (operation) => {
  test.concurrent.each(points)("whose process is killed %s is done once, with one answer", async (point) => {
    const command = await commandOf(operation);
    const doomed = await victim({ CRASH_POINT: point });
    expect(await ask(doomed.url + command.path, command.call).catch(() => undefined)).toBeUndefined();
    expect(await doomed.process.exited).toMatchObject({ signal: "SIGKILL" });
    const final = await retried(command);
    expect(final.status).toBe(200);
    expect(await moved(command)).toEqual(once[operation]);
    expect(await nothingIsLeft(command)).toBe(true);
  });

  test.each(["die-before", "die-after"] as const)(
    "is done once when the provider is killed: %s",
    async (next) => {
      const command = await commandOf(operation);
      await provider.turn({ next: [next] });
      const [, final] = await Promise.all([provider.restart(), retried(command)]);
      expect(final.status).toBe(200);
      expect(await moved(command)).toEqual(once[operation]);
    },
  );

  test("is finished without its client when rescuers are killed one after the other", async () => {
    const command = await commandOf(operation);
    // The steady process has a rescuer too, so a lease that it can't see the end of is set, and ended by hand for each victim.
    const leave = { LEASE_MS: "3600000" };
    const doomed = await victim({ ...leave, CRASH_POINT: "before-result" });
    await ask(doomed.url + command.path, command.call).catch(() => undefined);
    await doomed.process.exited;
    const deaths: EffectCrashPoint[] = [
      "before-result",
      "after-result",
      "before-completion",
      "after-completion",
    ];
    for (const point of deaths) {
      const rescuer = await victim({
        ...leave,
        CRASH_POINT: point,
        BACKGROUND: "on",
        BACKGROUND_EVERY_MS: "20",
      });
      await endLease(command, rescuer);
    }
    await until(() => nothingIsLeft(command), { timeoutMs: soonMs });
    expect(await moved(command)).toEqual(once[operation]);
    expect((await retried(command)).headers.get("idempotent-replayed")).toBe("true");
  });
});

/** The rescuer may lose the operation to the steady one, which is as good: then there is nothing to die at. */
async function endLease(command: Command, { process }: Replica): Promise<void> {
  const text = `
    update idemkit.idempotency_record set lease_expires_at = '-infinity'
    where disposition = 'running' and scope = $1`;
  await stage.pool.query({ text, values: [command.sub] });
  await until(async () => (await nothingIsLeft(command)) || isOver(process.pid), { timeoutMs: soonMs });
  await process.kill("SIGKILL");
}

function isOver(pid: number): boolean {
  try {
    globalThis.process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

describe("where the provider can't be asked and ignores keys", () => {
  test.each(["after-intent", "before-result"] as const)(
    "an operation killed %s is uncertain and not run again",
    async (point) => {
      const command = await commandOf("confirm", "blind");
      const doomed = await victim({ CRASH_POINT: point }, "blind");
      await ask(doomed.url + command.path, command.call).catch(() => undefined);
      await doomed.process.exited;
      const charged = point === "before-result" ? ["charge"] : [];
      const { final } = await persist(blindSteady.url + command.path, command.call, {
        timeoutMs: soonMs,
        patience: 0.3,
      });
      expect(fault(final)).toBe("409 operation_uncertain");
      expect((await ask(blindSteady.url + command.path, command.call)).text).toBe(final.text);
      expect(await moved(command)).toEqual(charged);
    },
  );
});

describe("a process paused beyond its lease", () => {
  test.each([
    ["after-intent", "honest"],
    ["before-result", "honest"],
    ["before-completion", "honest"],
    ["after-intent", "blind"],
    ["before-result", "blind"],
  ] as const)(
    "%s, with an %s provider, neither completes nor releases when it goes on",
    async (point, kind) => {
      const command = await commandOf("confirm", kind);
      const { call, path } = command;
      const sleeper = await victim({ PAUSE_POINT: point }, kind);
      const late = ask(sleeper.url + path, call);
      await sleeper.process.waitForLine(/^paused$/);
      await sleeper.process.kill("SIGSTOP");
      const other = kind === "honest" ? steady : blindSteady;
      const { final } = await persist(other.url + path, call, { timeoutMs: soonMs, patience: 0.3 });
      await sleeper.process.kill("SIGCONT");
      sleeper.process.stdin.write("go on\n");
      const answer = await late;
      // It has lost the operation, and says so, or gives the answer that was stored meanwhile: never one of its own.
      expect([final.text, "409 operation_in_progress"]).toContain(
        answer.status === 409 ? fault(answer) : answer.text,
      );
      expect((await ask(other.url + path, call)).text).toBe(final.text);
      expect(kind === "honest" ? final.status : fault(final)).toBe(
        kind === "honest" ? 200 : "409 operation_uncertain",
      );
      // Woken between intent and call it makes none: its intent is too old, and it no longer owns the operation to renew it.
      const isCalled = kind === "honest" || point === "before-result";
      expect(await moved(command)).toEqual(isCalled ? ["charge"] : []);
      await sleeper.process.kill("SIGKILL");
    },
  );
});
