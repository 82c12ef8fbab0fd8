import { errors, jwtVerify } from "jose";
import type { JWTPayload, JWTVerifyGetKey } from "jose";
import { ServiceError } from "../../../core/errors.ts";
import type { Principal } from "../../../core/principal.ts";

export interface AuthenticatorOptions {
  readonly issuer: string;
  readonly audience: string;
  /** The issuer's public keys, usually a remote JWKS. */
  readonly keys: JWTVerifyGetKey;
}

/** Reads the `Authorization` header. @throws ServiceError `token_missing`, `token_invalid`, `issuer_unavailable` */
export type Authenticator = (authorization: string | undefined) => Promise<Principal>;

/** Asymmetric ones only: with a shared secret, whoever can verify a token can also make one. */
const ALGORITHMS = ["EdDSA", "ES256", "ES384", "PS256", "RS256"];
const CLOCK_TOLERANCE_SECONDS = 5;
const MAX_SUB_LENGTH = 255;

export const createAuthenticator = (options: AuthenticatorOptions): Authenticator => {
  const { issuer, audience, keys } = options;
  const demands = {
    issuer,
    audience,
    algorithms: ALGORITHMS,
    requiredClaims: ["sub", "exp"],
    clockTolerance: CLOCK_TOLERANCE_SECONDS,
  };
  return async (authorization) => {
    const token = bearerToken(authorization);
    try {
      const { payload } = await jwtVerify(token, keys, demands);
      return principalOf(payload);
    } catch (error) {
      throw refusal(error);
    }
  };
};

const bearerToken = (authorization: string | undefined): string => {
  const [, token] = /^Bearer +([\w.~+/=-]+) *$/iu.exec(authorization ?? "") ?? [];
  if (token === undefined) {
    throw unauthenticated("token_missing", "a bearer token is required");
  }
  return token;
};

const principalOf = (payload: JWTPayload): Principal => {
  const { sub = "", roles } = payload;
  if (sub === "" || sub.length > MAX_SUB_LENGTH || /[\p{Cc}\p{Cs}]/u.test(sub)) {
    throw unauthenticated("token_invalid", "the token's sub can't be a customer");
  }
  const names = Array.isArray(roles) ? roles.filter((role): role is string => typeof role === "string") : [];
  return { sub, roles: new Set(names) };
};

/** A token that can't be checked, because the issuer doesn't answer, is not a bad token. */
const refusal = (error: unknown): ServiceError => {
  if (error instanceof ServiceError) {
    return error;
  }
  if (error instanceof errors.JOSEError && !isIssuerFault(error)) {
    const message =
      error instanceof errors.JWTExpired ? "the token has expired" : "the token is not valid here";
    return unauthenticated("token_invalid", message);
  }
  return new ServiceError({
    kind: "unavailable",
    code: "issuer_unavailable",
    message: "the keys of the token's issuer can't be fetched",
    cause: error,
  });
};

/** jose's plain JOSEError means that the key set's address answered, but not with a key set. */
const isIssuerFault = (error: errors.JOSEError): boolean =>
  error instanceof errors.JWKSTimeout ||
  error instanceof errors.JWKSInvalid ||
  error.code === "ERR_JOSE_GENERIC";

const unauthenticated = (code: string, message: string): ServiceError =>
  new ServiceError({ kind: "unauthenticated", code, message });
