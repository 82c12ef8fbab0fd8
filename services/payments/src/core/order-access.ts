import { ServiceError } from "./errors.ts";
import type { Order } from "./order.ts";
import type { Principal } from "./principal.ts";

type Owned = Pick<Order, "customerId">;

/** The order, where `principal` may read it: its owner, or an admin. @throws ServiceError `order_not_found`, `order_foreign` */
export const readable = <T extends Owned>(principal: Principal, field: string, order: T | undefined): T => {
  const found = existing(field, order);
  return principal.roles.has("admin") ? found : ownedBy(principal, field, found);
};

/** The order, where `principal` may pay for it: only its owner. @throws ServiceError `order_not_found`, `order_foreign` */
export const payable = <T extends Owned>(principal: Principal, field: string, order: T | undefined): T =>
  ownedBy(principal, field, existing(field, order));

const existing = <T extends Owned>(field: string, order: T | undefined): T => {
  if (order === undefined) {
    throw new ServiceError({
      kind: "not-found",
      code: "order_not_found",
      message: "there is no such order",
      faults: [{ field, message: "is not a known order" }],
    });
  }
  return order;
};

const ownedBy = <T extends Owned>(principal: Principal, field: string, order: T): T => {
  if (order.customerId !== principal.sub) {
    throw new ServiceError({
      kind: "forbidden",
      code: "order_foreign",
      message: "the order belongs to another customer",
      faults: [{ field, message: "is another customer's order" }],
    });
  }
  return order;
};
