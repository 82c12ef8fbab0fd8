import type { Pool } from "pg";

/** What the database holds of one customer, as a line for the transcript. */
export const rowsOf = async (pool: Pool, sub: string): Promise<string> => {
  const { rows } = await pool.query<{ payments: string; records: string }>({
    text: `
      select (select count(*) from public.payment where customer_id = $1) as payments,
             (select count(*) from idemkit.idempotency_record
              where scope = $1 and operation = 'charge') as records`,
    values: [sub],
  });
  const [row] = rows;
  return `rows: payment ${row?.payments}, idempotency_record of charge ${row?.records}`;
};
