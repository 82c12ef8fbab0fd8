import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";

/**
 * What happens to the next statement that commits: its answer is lost after it has committed (`answer-lost`), it never
 * arrives and both ends are cut (`not-sent`), or it never arrives and the server is left waiting, as behind a network
 * that went dark (`dark`).
 */
export type CommitFault = "answer-lost" | "not-sent" | "dark";

/** What commits: COMMIT itself, or the refusal's insert, which is a transaction of its own. */
export type Committing = "commit" | "refusal";

const sent = { commit: /(?:^|\0)commit\0/, refusal: /insert into [^]*'refuse'/ };
const answer = { commit: "COMMIT\0", refusal: "INSERT 0 1\0" };

export interface FaultProxy extends AsyncDisposable {
  /** The same database through the proxy. */
  readonly connectionString: string;
  /** Arms one fault for the next such statement; later ones pass. */
  failNext(what: Committing, fault: CommitFault): void;
  /** How many statements were met by a fault. */
  readonly faults: number;
}

const header = 5;
const startupLength = 8;

/** Cuts a stream of the frontend's messages into whole messages; the start-up message has no type byte. */
function messages(take: (message: Buffer) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  let started = false;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      if (rest.length < (started ? header : startupLength)) return;
      const length = started ? rest.readUInt32BE(1) + 1 : rest.readUInt32BE(0);
      if (rest.length < length) return;
      take(rest.subarray(0, length));
      rest = rest.subarray(length);
      started = true;
    }
  };
}

function carries(message: Buffer, what: Committing): boolean {
  const kind = String.fromCodePoint(message[0] ?? 0);
  return (kind === "Q" || kind === "P") && sent[what].test(message.subarray(header).toString("latin1"));
}

interface Armed {
  readonly what: Committing;
  readonly fault: CommitFault;
}

/** A TCP proxy in front of PostgreSQL that understands just enough of its protocol to meet a COMMIT. */
export async function startFaultProxy(connectionString: string): Promise<FaultProxy> {
  const target = new URL(connectionString);
  const sockets = new Set<Socket>();
  let armed: Armed | undefined;
  let faults = 0;

  const server = createServer((client) => {
    const backend = connect(Number(target.port), target.hostname);
    for (const socket of [client, backend]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
    }
    let met: Armed | undefined;
    const cut = (): void => {
      client.destroy();
      backend.destroy();
    };
    client.on(
      "data",
      messages((message) => {
        if (met === undefined && armed !== undefined && carries(message, armed.what)) {
          met = armed;
          armed = undefined;
          faults += 1;
          if (met.fault === "not-sent") cut();
          if (met.fault === "dark") client.destroy();
        }
        if (met === undefined || met.fault === "answer-lost") backend.write(message);
      }),
    );
    backend.on("data", (chunk: Buffer) => {
      if (met === undefined) client.write(chunk);
      else if (met.fault === "answer-lost" && chunk.includes(answer[met.what])) cut();
    });
    client.on("close", () => {
      if (met?.fault !== "dark") backend.destroy();
    });
    backend.on("close", () => client.destroy());
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const url = new URL(connectionString);
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as AddressInfo).port);
  return {
    connectionString: url.href,
    failNext: (what, fault) => {
      armed = { what, fault };
    },
    get faults() {
      return faults;
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}
