import { defineSaga, localStep, step } from "idemkit";
import type { SagaDefinition, StepContext } from "idemkit";
import type { ProviderPayment, ProviderPayments, Stock } from "../core/ports.ts";
import type { Moved, Movement, Provider } from "../core/provider.ts";
import { refusing } from "./refusing.ts";

export interface CheckoutSagaOptions<Tx> {
  readonly provider: Provider;
  readonly payments: ProviderPayments<Tx>;
  readonly stock: Stock<Tx>;
}

/** The order to check out; a saga's input is JSON. */
export interface CheckoutInput {
  readonly [name: string]: string;
  readonly orderId: string;
}

export type CheckoutSaga<Tx> = SagaDefinition<CheckoutInput, Tx>;

type Context = StepContext<CheckoutInput>;

/**
 * Reserves the stock here, charges at the provider, and confirms here. Undone in reverse order: the charge is refunded, then
 * the stock released and the order free to be paid for again. Once it is confirmed nothing is undone any more.
 */
export const checkoutSaga = <Tx>({
  provider,
  payments,
  stock,
}: CheckoutSagaOptions<Tx>): CheckoutSaga<Tx> => {
  const { honoursKeys, deadlineMs, graceMs } = provider;
  const reserve = localStep<CheckoutInput, ProviderPayment, Tx>("reserve", {
    run: async ({ input: { orderId }, sagaId }, tx) => {
      const payment = payments.open(tx, orderId, { operation: "checkout", key: sagaId });
      return refusing(payment.then((opened) => stock.reserve(tx, orderId).then(() => opened)));
    },
    compensate: async ({ input: { orderId }, result }, tx) => {
      await payments.reverse(tx, result);
      await stock.release(tx, orderId);
    },
  });
  const charge = step<CheckoutInput, Moved, Tx>("charge", {
    run: (context) => provider.move(chargeOf(context), context),
    recover: (context) => provider.find("charge", context),
    compensate: (context) => provider.move(refundOf(context), context),
    recoverCompensation: (context) => provider.find("refund", context),
    honoursKeys,
    deadlineMs,
    graceMs,
  });
  const confirm = localStep<CheckoutInput, string, Tx>("confirm", {
    run: async (context, tx) => {
      const { id } = context.results["charge"] as Moved;
      await refusing(payments.settle(tx, paymentOf(context), id));
      await refusing(stock.sell(tx, context.input.orderId));
      return id;
    },
    pivot: true,
  });
  return defineSaga<CheckoutInput, Tx>("checkout", { steps: [reserve, charge, confirm] });
};

const paymentOf = ({ results }: Context): ProviderPayment => results["reserve"] as ProviderPayment;

const chargeOf = (context: Context): Movement => {
  const { id, amount, currency } = paymentOf(context);
  return { kind: "charge", amount, currency, reference: id };
};

const refundOf = (context: Context & { readonly result: Moved }): Movement => {
  const { amount, currency } = paymentOf(context);
  return { kind: "refund", amount, currency, reference: context.result.id };
};
