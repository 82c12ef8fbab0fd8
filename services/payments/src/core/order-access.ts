import { ServiceError } from "./errors.ts";
import type { Order } from "./order.ts";
import type { Principal } from "./principal.ts";

type Owned = Pick<Order, "customerId">;

/** What is asked about: it names the codes and messages. */
type Thing = "order" | "payment" | "checkout";

/** The order, where `principal` may read it: its owner, or an admin. @throws ServiceError `order_not_found`, `order_foreign` */
export const readable = <T extends Owned>(
  principal: Principal,
  field: string,
  order: T | undefined,
  thing: Thing = "order",
): T => {
  const found = existing(field, order, thing);
  return principal.roles.has("admin") ? found : ownedBy(principal, field, found, thing);
};

/** The order, where `principal` may pay for it: only its owner. @throws ServiceError `order_not_found`, `order_foreign` */
export const payable = <T extends Owned>(principal: Principal, field: string, order: T | undefined): T =>
  ownedBy(principal, field, existing(field, order, "order"), "order");

const existing = <T extends Owned>(field: string, order: T | undefined, thing: Thing): T => {
  if (order === undefined) {
    throw new ServiceError({
      kind: "not-found",
      code: `${thing}_not_found`,
      message: `there is no such ${thing}`,
      faults: [{ field, message: `is not a known ${thing}` }],
    });
  }
  return order;
};

const ownedBy = <T extends Owned>(principal: Principal, field: string, order: T, thing: Thing): T => {
  if (order.customerId !== principal.sub) {
    throw new ServiceError({
      kind: "forbidden",
      code: `${thing}_foreign`,
      message: `the ${thing} belongs to another customer`,
      faults: [{ field, message: `is another customer's ${thing}` }],
    });
  }
  return order;
};
