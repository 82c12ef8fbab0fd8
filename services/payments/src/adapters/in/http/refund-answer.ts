import type { Refund } from "../../../core/ports.ts";

/** A refund as clients see it. */
export const refundAnswerOf = ({
  externalPaymentId: _charge,
  ...refund
}: Refund): Omit<Refund, "externalPaymentId"> => refund;
