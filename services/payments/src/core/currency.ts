import { invalid } from "./errors.ts";

// ISO 4217 as the runtime's ICU data has it, so that the list ages with the runtime and not with this file.
const currencies: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency"));

/** @throws ServiceError `validation_failed` naming `field` where `code` isn't an ISO 4217 code */
export const parseCurrency = (field: string, code: string): string => {
  if (!currencies.has(code)) {
    throw invalid(field, "must be an ISO 4217 currency code in capitals");
  }
  return code;
};
