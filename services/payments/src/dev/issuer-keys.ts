import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { exportJWK, generateKeyPair, importJWK, SignJWT } from "jose";
import type { JWK } from "jose";

/** Development only: the issuer's name, its key and how to sign with it. */
export interface IssuerKeys {
  readonly publicKey: JWK;
  /** A bearer token for `sub`. */
  sign(sub: string, roles: readonly string[]): Promise<string>;
}

export const ISSUER = "https://issuer.payments.localhost";
export const AUDIENCE = "payments";
const ALGORITHM = "ES256";
/** A day, so that a line copied from the terminal in the morning still works in the evening. */
const TOKEN_LIFETIME = "24h";

const keyFile = (folder: string): string => join(folder, "issuer-key.json");

/** The keys in `folder`, made there the first time, so that a token outlives a restart of the service. */
export const openIssuerKeys = async (folder: string): Promise<IssuerKeys> =>
  (await readIssuerKeys(folder)) ?? (await createIssuerKeys(folder));

/** The keys in `folder`, if any were made. */
export const readIssuerKeys = async (folder: string): Promise<IssuerKeys | undefined> => {
  try {
    return issuerKeys(JSON.parse(await readFile(keyFile(folder), "utf8")) as JWK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      return undefined;
    }
    throw error;
  }
};

const createIssuerKeys = async (folder: string): Promise<IssuerKeys> => {
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
  const jwk = { ...(await exportJWK(privateKey)), kid: randomUUID(), alg: ALGORITHM };
  await mkdir(folder, { recursive: true });
  // Renamed into place, so that a process killed here leaves no half a key.
  const draft = `${keyFile(folder)}.${randomUUID()}`;
  await writeFile(draft, JSON.stringify(jwk), { mode: 0o600 });
  await rename(draft, keyFile(folder));
  return issuerKeys(jwk);
};

const issuerKeys = (jwk: JWK): IssuerKeys => {
  const { d: _private, ...publicKey } = jwk;
  return {
    publicKey: { ...publicKey, use: "sig" },
    sign: async (sub, roles) =>
      new SignJWT({ roles: [...roles] })
        .setProtectedHeader({ alg: ALGORITHM, kid: jwk.kid ?? "" })
        .setSubject(sub)
        .setIssuer(ISSUER)
        .setAudience(AUDIENCE)
        .setIssuedAt()
        .setExpirationTime(TOKEN_LIFETIME)
        .sign(await importJWK(jwk, ALGORITHM)),
  };
};
