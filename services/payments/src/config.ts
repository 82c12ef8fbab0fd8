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
}

type Environment = Readonly<Record<string, string | undefined>>;

const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"];

/**
 * Reads `DATABASE_URL`, `ISSUER` and `JWKS_URL`, which must be there, and `PORT` (3000), `HOST` (127.0.0.1),
 * `AUDIENCE` (payments), `POOL_SIZE` (10) and `LOG_LEVEL` (info).
 * @throws Error naming the variable that is missing or wrong
 */
export const readConfig = (environment: Environment): Config => ({
  databaseUrl: required(environment, "DATABASE_URL"),
  host: given(environment, "HOST") ?? "127.0.0.1",
  port: integer(environment, "PORT", { fallback: 3000, min: 0, max: 65_535 }),
  issuer: required(environment, "ISSUER"),
  audience: given(environment, "AUDIENCE") ?? "payments",
  jwksUrl: url(environment, "JWKS_URL"),
  poolSize: integer(environment, "POOL_SIZE", { fallback: 10, min: 1, max: 1000 }),
  logLevel: oneOf(environment, "LOG_LEVEL", LOG_LEVELS, "info"),
});

/** A whole number from the environment. @throws Error naming the variable */
export const integer = (
  environment: Environment,
  name: string,
  { fallback, min, max }: { readonly fallback: number; readonly min: number; readonly max: number },
): number => {
  const text = given(environment, name) ?? String(fallback);
  const value = /^\d+$/u.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) {
    throw new Error(`${name} must be a whole number from ${min} to ${max}, and is ${JSON.stringify(text)}`);
  }
  return value;
};

/** Set to nothing is not set. */
const given = (environment: Environment, name: string): string | undefined =>
  environment[name] === "" ? undefined : environment[name];

const required = (environment: Environment, name: string): string => {
  const value = given(environment, name);
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

const oneOf = (
  environment: Environment,
  name: string,
  allowed: readonly string[],
  fallback: string,
): string => {
  const value = given(environment, name) ?? fallback;
  if (!allowed.includes(value)) {
    throw new Error(`${name} must be one of ${allowed.join(", ")}`);
  }
  return value;
};
