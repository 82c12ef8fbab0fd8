export interface StartPostgresOptions {
  /** Made where it is missing; never touched where it holds something else. */
  dataDir: string;
  /** @defaultValue a free port */
  port?: number | undefined;
  /** The folder of `initdb` and `postgres`. @defaultValue `PG_BIN_DIR`, else the binaries from npm, else the system's */
  binDir?: string | undefined;
  /** Server settings, as in postgresql.conf. */
  settings?: Record<string, string | number | boolean> | undefined;
  /** False switches fsync off: for tests, where only processes die and never the machine. @defaultValue true */
  durable?: boolean | undefined;
  /** True has the data folder removed also when this process is killed. @defaultValue false */
  temporary?: boolean | undefined;
}

export interface EmbeddedPostgres {
  /** Of the database `postgres`, as its superuser; it holds the password. */
  readonly connectionString: string;
  readonly port: number;
  /** Where the data really is: not the folder asked for, where the server's user can't enter that. */
  readonly dataDir: string;
  /** The postmaster's; another one after each `start`. */
  readonly pid: number;
  /** Starts it again on the same port; does nothing while it runs. */
  start(): Promise<void>;
  /** smart: waits for the clients; fast: ends them; immediate: as in a crash. @defaultValue fast */
  stop(mode?: "smart" | "fast" | "immediate"): Promise<void>;
  /** SIGKILL of the server and all its processes. */
  kill(): Promise<void>;
  /** Stops it and removes its data. */
  remove(): Promise<void>;
}

/**
 * Starts a PostgreSQL that listens on 127.0.0.1 only.
 *
 * @throws an Error naming the port or the data folder, where either is taken by a live process
 */
export function startPostgres(options: StartPostgresOptions): Promise<EmbeddedPostgres>;
