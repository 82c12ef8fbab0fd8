export type Role = "customer" | "admin";

/** Who is calling, as the token says; made by the authenticator only. */
export interface Principal {
  readonly sub: string;
  readonly roles: ReadonlySet<string>;
}
