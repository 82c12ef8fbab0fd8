// The peers are installed by the benchmark itself, in a folder of their own: their types are not there before.
declare module "graphile-worker";
declare module "pg-boss";
declare module "pg-transactional-outbox";
