// The n-th command of a run, always the same: a replay is made again from its number alone.

/** Spreads keys over the index, as the random keys of real clients do: neighbours land on different pages. */
function scattered(/** @type {number} */ n) {
  return (Math.imul(n, 0x9e3779b1) >>> 0).toString(16).padStart(8, "0");
}

/**
 * @param {string} prefix
 * @param {number} n
 */
export function keyOf(prefix, n) {
  return `${scattered(n)}-${prefix}-${n.toString(16).padStart(8, "0")}`;
}

/** @param {number} n */
function bodyOf(n) {
  return JSON.stringify({
    orderId: `order-${n}`,
    provider: "acme-payments",
    externalPaymentId: `pay_${scattered(n)}`,
    amount: `${(n % 900) + 1}.50`,
    currency: "EUR",
    description: "Two tickets for the early train, seats by the window",
  });
}

/**
 * The bytes of one request. The customer is the scope of its key; a thousand of them take turns.
 * @param {string} path
 * @param {string} key
 * @param {number} n
 */
export function requestOf(path, key, n) {
  const body = bodyOf(n);
  return `POST ${path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nX-Customer: customer-${n % 1000}\r
Idempotency-Key: ${key}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
