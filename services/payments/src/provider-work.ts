import { startRescuer, startSagas } from "idemkit";
import type { PostgresDatabase, Running } from "idemkit";
import type { PoolClient } from "pg";
import { announcedPayments, announcedRefunds } from "./adapters/out/events/announced.ts";
import { outboxEvents } from "./adapters/out/events/outbox-events.ts";
import { providerPayments } from "./adapters/out/postgres/provider-payments.ts";
import { refunds } from "./adapters/out/postgres/refunds.ts";
import { stock } from "./adapters/out/postgres/stock.ts";
import type { BackgroundConfig } from "./config.ts";
import type { Provider } from "./core/provider.ts";
import { checkoutSaga } from "./use-cases/checkout-saga.ts";
import type { CheckoutSaga } from "./use-cases/checkout-saga.ts";
import { confirmPayment } from "./use-cases/confirm-payment.ts";
import type { ConfirmPaymentOperation } from "./use-cases/confirm-payment.ts";
import { refundPayment } from "./use-cases/refund-payment.ts";
import type { RefundPaymentOperation } from "./use-cases/refund-payment.ts";

/** Everything that goes through the provider, for routes to call and for the background to finish. */
export interface ProviderWork {
  readonly database: PostgresDatabase<PoolClient>;
  readonly confirm: ConfirmPaymentOperation;
  readonly refundOrder: RefundPaymentOperation;
  readonly refundPayment: RefundPaymentOperation;
  readonly checkout: CheckoutSaga<PoolClient>;
}

export interface ProviderWorkOptions {
  readonly database: PostgresDatabase<PoolClient>;
  readonly provider: Provider;
  readonly leaseMs: number;
}

export const providerWork = ({ database, provider, leaseMs }: ProviderWorkOptions): ProviderWork => {
  const payments = announcedPayments(providerPayments, outboxEvents);
  const refunding = { database, provider, refunds: announcedRefunds(refunds, outboxEvents), leaseMs };
  return {
    database,
    confirm: confirmPayment({ database, provider, payments, leaseMs }),
    refundOrder: refundPayment("refund-order", refunding),
    refundPayment: refundPayment("refund-payment", refunding),
    checkout: checkoutSaga({ provider, payments, stock }),
  };
};

/** Finishes what dead processes left behind, and runs the sagas; every process of the service may do it. */
export const startBackground = (
  { database, confirm, refundOrder, refundPayment: refund, checkout }: ProviderWork,
  { leaseMs, everyMs, uncertainEveryMs }: Omit<BackgroundConfig, "isOn">,
  logger: { error(message: string): void },
): Running => {
  const rescuer = startRescuer([confirm, refundOrder, refund], { everyMs, uncertainEveryMs, logger });
  const heartbeatMs = Math.floor(leaseMs / 3);
  const sagas = startSagas(database, [checkout], {
    pollMs: everyMs,
    leaseMs,
    heartbeatMs,
    uncertainEveryMs,
    logger,
  });
  const stop = async (): Promise<void> => {
    await Promise.all([rescuer.stop(), sagas.stop()]);
  };
  return { stop, [Symbol.asyncDispose]: stop };
};
