import { checkInteger, checkNames } from "../internal/options.ts";
import { anyMatches, macs, secretsOf } from "./signatures.ts";
import type { Secrets } from "./signatures.ts";
import { secondsOf } from "./verifier.ts";
import type { SignatureOptions, SignedRequest, WebhookVerifier } from "./verifier.ts";

/**
 * Stripe's signatures (docs.stripe.com/webhooks, "verify manually"): `Stripe-Signature: t=…,v1=…`, HMAC-SHA256 over
 * `timestamp.body` with the endpoint's secret as it is. The event's id is in the body: `eventId` of the webhook reads it.
 * @throws IdemkitError `option_invalid`.
 */
export function stripe(secret: Secrets, options: SignatureOptions = {}): WebhookVerifier {
  checkNames("stripe", options, ["toleranceSeconds"]);
  const tolerance = checkInteger("toleranceSeconds", options.toleranceSeconds ?? 300, 1, 86_400);
  const secrets = secretsOf("stripe", secret, (text) => Buffer.from(text, "utf8"));
  return {
    source: "stripe",
    verify: ({ header, body, nowSeconds }: SignedRequest) => {
      const parts = (header("stripe-signature") ?? "").split(",").map((part) => part.trim().split("=", 2));
      const [timestamp] = valuesOf(parts, "t");
      const seconds = secondsOf(timestamp);
      const signatures = valuesOf(parts, "v1").map((hex) => Buffer.from(hex, "hex"));
      if (timestamp === undefined || seconds === undefined) return undefined;
      const genuine = anyMatches(signatures, macs(secrets, `${timestamp}.`, body));
      return genuine && Math.abs(nowSeconds - seconds) <= tolerance ? {} : undefined;
    },
  };
}

function valuesOf(parts: readonly (readonly string[])[], name: string): readonly string[] {
  return parts.flatMap(([key, value]) => (key === name && value !== undefined ? [value] : []));
}
