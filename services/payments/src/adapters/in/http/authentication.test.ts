import { createLocalJWKSet, exportJWK, generateKeyPair, SignJWT } from "jose";
import { beforeAll, describe, expect, test } from "vitest";
import { createAuthenticator } from "./authentication.ts";
import type { Authenticator } from "./authentication.ts";

const issuer = "https://issuer.example";
const audience = "payments";
let authenticate: Authenticator;
let sign: (claims: Record<string, unknown>, key?: "ours" | "theirs") => Promise<string>;

const valid = () => ({
  sub: "alice",
  iss: issuer,
  aud: audience,
  exp: Date.now() / 1000 + 60,
  roles: ["customer"],
});

beforeAll(async () => {
  const ours = await generateKeyPair("ES256", { extractable: true });
  const theirs = await generateKeyPair("ES256");
  const jwk = { ...(await exportJWK(ours.publicKey)), kid: "k", alg: "ES256" };
  authenticate = createAuthenticator({ issuer, audience, keys: createLocalJWKSet({ keys: [jwk] }) });
  sign = (claims, key = "ours") =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: "ES256", kid: "k" })
      .sign((key === "ours" ? ours : theirs).privateKey);
});

describe("the authenticator", () => {
  test("takes the principal and its roles from a valid token", async () => {
    const principal = await authenticate(`Bearer ${await sign(valid())}`);
    expect(principal).toEqual({ sub: "alice", roles: new Set(["customer"]) });
  });

  test("gives no role to a token without roles", async () => {
    const { roles: _roles, ...claims } = valid();
    expect((await authenticate(`Bearer ${await sign(claims)}`)).roles.size).toBe(0);
  });

  test.each([
    ["another issuer", { iss: "https://other.example" }],
    ["another audience", { aud: "ledger" }],
    ["an expiry that has passed", { exp: 1 }],
    ["no expiry", { exp: undefined }],
    ["no sub", { sub: undefined }],
    ["an empty sub", { sub: "" }],
    ["a sub with a control character", { sub: "a\u0000b" }],
    ["a start in the future", { nbf: Date.now() / 1000 + 3600 }],
  ])("refuses a token with %s", async (_what, change) => {
    const token = await sign({ ...valid(), ...change });
    await expect(authenticate(`Bearer ${token}`)).rejects.toMatchObject({
      kind: "unauthenticated",
      code: "token_invalid",
    });
  });

  test("refuses a token that someone else signed", async () => {
    const token = await sign(valid(), "theirs");
    await expect(authenticate(`Bearer ${token}`)).rejects.toMatchObject({ code: "token_invalid" });
  });

  test("refuses a token that nobody signed", async () => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const token = `${part({ alg: "none" })}.${part(valid())}.`;
    await expect(authenticate(`Bearer ${token}`)).rejects.toMatchObject({ code: "token_invalid" });
  });

  test.each([undefined, "", "Bearer", "Basic YTpi", "Bearer a b"])(
    "refuses the header %j as no token",
    async (header) => {
      await expect(authenticate(header)).rejects.toMatchObject({ code: "token_missing" });
    },
  );

  test("is unavailable, and blames no token, where the issuer's keys can't be fetched", async () => {
    const cut = createAuthenticator({
      issuer,
      audience,
      keys: () => Promise.reject(new TypeError("fetch failed")),
    });
    await expect(cut(`Bearer ${await sign(valid())}`)).rejects.toMatchObject({ kind: "unavailable" });
  });
});
