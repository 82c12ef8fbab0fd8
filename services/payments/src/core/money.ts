import { invalid } from "./errors.ts";

/**
 * An exact amount, in units of 1/10000: bigint arithmetic can't round, and four places are what
 * `numeric(19,4)` keeps.
 */
export type Money = bigint & { readonly unit: "1/10000" };

const PLACES = 4;
const UNITS_PER_ONE = 10_000n;
/** The largest value `numeric(19,4)` holds: 999999999999999.9999. */
const MAX_UNITS = 10n ** 19n - 1n;

/** A plain decimal of at most four places: no sign, no exponent, no leading zeros. Also in the OpenAPI document. */
export const MONEY_PATTERN = "^(0|[1-9][0-9]{0,14})(\\.[0-9]{1,4})?$";

const moneySyntax = new RegExp(MONEY_PATTERN, "u");

/** The amount written by `text`. @throws ServiceError `validation_failed` naming `field` */
export const parseMoney = (field: string, text: string): Money => {
  if (!moneySyntax.test(text)) {
    throw invalid(field, "must be a decimal string of at most 15 digits and at most four places");
  }
  const [whole = "0", fraction = ""] = text.split(".");
  return money(field, BigInt(whole) * UNITS_PER_ONE + BigInt(fraction.padEnd(PLACES, "0")));
};

/** Like {@link parseMoney}, and more than zero. @throws ServiceError `validation_failed` naming `field` */
export const parsePositiveMoney = (field: string, text: string): Money => {
  const amount = parseMoney(field, text);
  if (amount === 0n) {
    throw invalid(field, "must be more than zero");
  }
  return amount;
};

/** `unitPrice` times a whole number of pieces. @throws ServiceError `validation_failed` where it no longer fits */
export const times = (field: string, unitPrice: Money, quantity: number): Money =>
  money(field, unitPrice * BigInt(quantity));

/** @throws ServiceError `validation_failed` naming `field` where the sum no longer fits */
export const sum = (field: string, amounts: readonly Money[]): Money =>
  money(
    field,
    amounts.reduce<bigint>((total, amount) => total + amount, 0n),
  );

/** Always four places, as PostgreSQL writes `numeric(19,4)`: `"21.0000"`. */
export const formatMoney = (amount: Money): string => {
  const fraction = String(amount % UNITS_PER_ONE).padStart(PLACES, "0");
  return `${amount / UNITS_PER_ONE}.${fraction}`;
};

const money = (field: string, units: bigint): Money => {
  if (units > MAX_UNITS) {
    throw invalid(field, "adds up to more than 999999999999999.9999");
  }
  return units as Money;
};
