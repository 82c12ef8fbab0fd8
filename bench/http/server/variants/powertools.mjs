import { importPeer } from "../../peers.mjs";
import { callOf, runBare } from "../handlers.mjs";

const take = `insert into peer_record (key, data, expires_at) values ($1, $2, to_timestamp($3))
  on conflict (key) do update set data = excluded.data, expires_at = excluded.expires_at
  where peer_record.expires_at < now()`;
const put = "update peer_record set data = $2, expires_at = to_timestamp($3) where key = $1";
const look = "select data from peer_record where key = $1 and expires_at > now()";

/**
 * Its persistence layer on the same PostgreSQL, in a logged table; the package brings DynamoDB and Redis.
 * @param {import("pg").Pool} pool
 */
async function layerOn(pool) {
  const { BasePersistenceLayer, IdempotencyRecord } = await importPeer(
    "@aws-lambda-powertools/idempotency/persistence",
  );
  const { IdempotencyItemAlreadyExistsError } = await importPeer("@aws-lambda-powertools/idempotency");

  const layer = {
    /** @param {{ idempotencyKey: string, expiryTimestamp: number }} record */
    _putRecord: async (record) => {
      const { idempotencyKey, expiryTimestamp } = record;
      const { rowCount } = await pool.query(take, [idempotencyKey, JSON.stringify(record), expiryTimestamp]);
      if (rowCount === 1) return;
      throw new IdempotencyItemAlreadyExistsError("exists", await layer._getRecord(idempotencyKey));
    },
    /** @param {{ idempotencyKey: string, expiryTimestamp: number }} record */
    _updateRecord: async (record) => {
      await pool.query(put, [record.idempotencyKey, JSON.stringify(record), record.expiryTimestamp]);
    },
    /** @param {string} key */
    _getRecord: async (key) => {
      const { rows } = await pool.query(look, [key]);
      return new IdempotencyRecord(JSON.parse(rows[0].data));
    },
    /** @param {{ idempotencyKey: string }} record */
    _deleteRecord: async ({ idempotencyKey }) => {
      await pool.query("delete from peer_record where key = $1", [idempotencyKey]);
    },
  };
  return Object.assign(new BasePersistenceLayer(), layer);
}

/** `@aws-lambda-powertools/idempotency` around the function below the route. @type {import("../handlers.mjs").Variant} */
export async function powertools(app, { pool, handler }) {
  const { IdempotencyConfig, makeIdempotent } = await importPeer("@aws-lambda-powertools/idempotency");
  const config = new IdempotencyConfig({
    eventKeyJmesPath: "[customer, key]",
    payloadValidationJmesPath: "command",
    expiresAfterSeconds: 48 * 3600,
  });
  config.registerLambdaContext({ getRemainingTimeInMillis: () => 30_000 });
  const charge = makeIdempotent(
    (/** @type {import("../handlers.mjs").Call} */ call) => runBare(pool, handler, call),
    { persistenceStore: await layerOn(pool), config, keyPrefix: handler },
  );
  app.post(`/${handler}`, async (request, reply) => {
    try {
      return await reply.code(201).send(await charge(callOf(request)));
    } catch (error) {
      return reply.code(409).send({ code: error instanceof Error ? error.name : String(error) });
    }
  });
}
