/** What one service process needs to know; read from the environment once, at the start. */
export interface Config {
  readonly databaseUrl: string;
  readonly host: string;
  readonly port: number;
  readonly issuer: string;
  readonly audience: string;
  readonly jwksUrl: URL;
  readonly poolSize: number;
  readonly logLevel: string;
  /** Without one the routes that need it are not there. */
  readonly provider: ProviderConfig | undefined;
  readonly background: BackgroundConfig;
  /** What the provider signs its webhooks with; without one it has nowhere to send them. */
  readonly webhookSecret: string | undefined;
  /** How long an event may wait for a relay before `/ready` says so; without one it is only told. */
  readonly outboxAgeLimitMs: number | undefined;
}

/** How the payment provider is reached, and how far it can be trusted. */
export interface ProviderConfig {
  readonly url: URL;
  readonly honoursKeys: boolean;
  readonly deadlineMs: number;
  readonly graceMs: number;
}

/** What this process does beside serving requests. */
export interface BackgroundConfig {
  /** Whether it finishes what dead processes left, and runs sagas. */
  readonly isOn: boolean;
  /** How long an operation or a saga stays with a process that gives no sign of life. */
  readonly leaseMs: number;
  /** How often it looks for work. */
  readonly everyMs: number;
  /** How often it asks again about an operation that is uncertain. */
  readonly uncertainEveryMs: number;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const HOUR_MS = 3_600_000;
const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"];

/**
 * Reads `DATABASE_URL`, `ISSUER` and `JWKS_URL`, which must be there, and `PORT` (3000), `HOST` (127.0.0.1),
 * `AUDIENCE` (payments), `POOL_SIZE` (10) and `LOG_LEVEL` (info). Where `PROVIDER_URL` is set, so may be
 * `PROVIDER_HONOURS_KEYS` (true), `PROVIDER_DEADLINE_MS` (10000) and `PROVIDER_GRACE_MS` (5000). `BACKGROUND` (on),
 * `LEASE_MS` (30000), `BACKGROUND_EVERY_MS` (1000) and `UNCERTAIN_EVERY_MS` (60000) are of the work beside requests.
 * With `PROVIDER_WEBHOOK_SECRET` the provider's webhooks are taken, and with `OUTBOX_AGE_LIMIT_MS` `/ready` depends
 * on the outbox.
 * @throws Error naming the variable that is missing or wrong
 */
export const readConfig = (environment: Environment): Config => ({
  databaseUrl: required(environment, "DATABASE_URL"),
  host: optional(environment, "HOST") ?? "127.0.0.1",
  port: integer(environment, "PORT", { fallback: 3000, min: 0, max: 65_535 }),
  issuer: required(environment, "ISSUER"),
  audience: optional(environment, "AUDIENCE") ?? "payments",
  jwksUrl: url(environment, "JWKS_URL"),
  poolSize: integer(environment, "POOL_SIZE", { fallback: 10, min: 1, max: 1000 }),
  logLevel: oneOf(environment, "LOG_LEVEL", LOG_LEVELS, "info"),
  provider: provider(environment),
  webhookSecret: optional(environment, "PROVIDER_WEBHOOK_SECRET"),
  outboxAgeLimitMs:
    optional(environment, "OUTBOX_AGE_LIMIT_MS") === undefined
      ? undefined
      : integer(environment, "OUTBOX_AGE_LIMIT_MS", { fallback: 0, min: 1, max: 24 * HOUR_MS }),
  background: {
    isOn: oneOf(environment, "BACKGROUND", ["on", "off"], "on") === "on",
    leaseMs: integer(environment, "LEASE_MS", { fallback: 30_000, min: 300, max: HOUR_MS }),
    everyMs: integer(environment, "BACKGROUND_EVERY_MS", { fallback: 1000, min: 10, max: HOUR_MS }),
    uncertainEveryMs: integer(environment, "UNCERTAIN_EVERY_MS", { fallback: 60_000, min: 10, max: HOUR_MS }),
  },
});

const provider = (environment: Environment): ProviderConfig | undefined => {
  if (optional(environment, "PROVIDER_URL") === undefined) {
    return undefined;
  }
  return {
    url: url(environment, "PROVIDER_URL"),
    honoursKeys: oneOf(environment, "PROVIDER_HONOURS_KEYS", ["true", "false"], "true") === "true",
    deadlineMs: integer(environment, "PROVIDER_DEADLINE_MS", { fallback: 10_000, min: 1, max: HOUR_MS }),
    graceMs: integer(environment, "PROVIDER_GRACE_MS", { fallback: 5000, min: 0, max: HOUR_MS }),
  };
};

/** A whole number from the environment. @throws Error naming the variable */
export const integer = (
  environment: Environment,
  name: string,
  { fallback, min, max }: { readonly fallback: number; readonly min: number; readonly max: number },
): number => {
  const text = optional(environment, name) ?? String(fallback);
  const value = /^\d+$/u.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) {
    throw new Error(`${name} must be a whole number from ${min} to ${max}, and is ${JSON.stringify(text)}`);
  }
  return value;
};

/** Set to nothing is not set. */
export const optional = (environment: Environment, name: string): string | undefined =>
  environment[name] === "" ? undefined : environment[name];

export const required = (environment: Environment, name: string): string => {
  const value = optional(environment, name);
  if (value === undefined) {
    throw new Error(`${name} must be set`);
  }
  return value;
};

const url = (environment: Environment, name: string): URL => {
  const text = required(environment, name);
  if (!URL.canParse(text)) {
    throw new Error(`${name} must be a URL`);
  }
  return new URL(text);
};

export const oneOf = (
  environment: Environment,
  name: string,
  allowed: readonly string[],
  fallback: string,
): string => {
  const value = optional(environment, name) ?? fallback;
  if (!allowed.includes(value)) {
    throw new Error(`${name} must be one of ${allowed.join(", ")}`);
  }
  return value;
};
