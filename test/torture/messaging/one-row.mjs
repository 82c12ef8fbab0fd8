/**
 * The one row of a query, as numbers: what is counted here fits.
 * @template {string} Name
 * @param {import("pg").Pool} pool
 * @param {string} text
 * @param {readonly Name[]} names of the columns
 * @returns {Promise<Record<Name, number>>}
 */
export async function oneRow(pool, text, names) {
  const { rows } = /** @type {{ rows: Record<string, unknown>[] }} */ (await pool.query(text));
  return /** @type {Record<Name, number>} */ (
    Object.fromEntries(names.map((name) => [name, Number(rows[0]?.[name])]))
  );
}
