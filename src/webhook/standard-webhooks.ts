import { checkInteger, checkNames, invalid } from "../internal/options.ts";
import { anyMatches, macs, secretsOf } from "./signatures.ts";
import type { Secrets } from "./signatures.ts";
import { secondsOf } from "./verifier.ts";
import type { SignatureOptions, SignedRequest, WebhookVerifier } from "./verifier.ts";

/** Settings of {@link standardWebhooks}. */
export interface StandardWebhooksOptions extends SignatureOptions {
  /**
   * Begins the names of the headers: `webhook-id` and so on; `"svix"` for providers that still send `svix-id`.
   * @defaultValue "webhook"
   */
  readonly headerPrefix?: string;
  /**
   * Whose ids they are, such as `acme`: part of the events' identity, so never renamed. Two providers at one consumer need
   * one each, or an id of the one would pass for a repeat of the other's.
   * @defaultValue "standard-webhooks"
   */
  readonly source?: string;
}

/**
 * Signatures by Standard Webhooks 1.0 (standardwebhooks.com), scheme v1: HMAC-SHA256 over `id.timestamp.body` with a
 * base64 secret, `whsec_` before it or not. Several signatures in the header, and several secrets here, are for rotation.
 * @throws IdemkitError `option_invalid`.
 */
export function standardWebhooks(secret: Secrets, options: StandardWebhooksOptions = {}): WebhookVerifier {
  checkNames("standardWebhooks", options, ["toleranceSeconds", "headerPrefix", "source"]);
  const tolerance = checkInteger("toleranceSeconds", options.toleranceSeconds ?? 300, 1, 86_400);
  const secrets = secretsOf("standardWebhooks", secret, decodeSecret);
  const { headerPrefix: prefix = "webhook", source = "standard-webhooks" } = options;
  if (typeof source !== "string" || source === "") throw invalid("standardWebhooks.source", "must be a text");
  return {
    source,
    verify: ({ header, body, nowSeconds }: SignedRequest) => {
      const eventId = header(`${prefix}-id`);
      const timestamp = header(`${prefix}-timestamp`);
      const seconds = secondsOf(timestamp);
      const signatures = signaturesOf(header(`${prefix}-signature`));
      const complete =
        timestamp !== undefined && seconds !== undefined && eventId !== undefined && eventId !== "";
      if (!complete) return undefined;
      const genuine = anyMatches(signatures, macs(secrets, `${eventId}.${timestamp}.`, body));
      return genuine && Math.abs(nowSeconds - seconds) <= tolerance ? { eventId } : undefined;
    },
  };
}

function decodeSecret(secret: string): Uint8Array {
  return Buffer.from(secret.replace(/^whsec_/, ""), "base64");
}

/** `v1,<base64> v1,<base64>`; other versions are not ours to judge. */
function signaturesOf(header = ""): readonly Buffer[] {
  return header
    .split(" ")
    .filter((each) => each.startsWith("v1,"))
    .map((each) => Buffer.from(each.slice(3), "base64"));
}
