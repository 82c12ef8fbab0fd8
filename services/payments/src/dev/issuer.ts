import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { JWK } from "jose";

export interface IssuerServer {
  readonly jwksUrl: string;
  stop(): Promise<void>;
}

/** Development only: serves the issuer's public key as a JWKS, on a free port of this machine. */
export const startIssuer = async (publicKey: JWK): Promise<IssuerServer> => {
  const body = JSON.stringify({ keys: [publicKey] });
  const server = createServer((request, response) => {
    const found = request.url === "/.well-known/jwks.json";
    response.writeHead(found ? 200 : 404, { "content-type": "application/json" }).end(found ? body : "{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    jwksUrl: `http://127.0.0.1:${port}/.well-known/jwks.json`,
    stop: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
};
