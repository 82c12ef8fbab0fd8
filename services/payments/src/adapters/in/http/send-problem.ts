import type { FastifyReply } from "fastify";
import type { Problem } from "./problem.ts";

export const sendProblem = (reply: FastifyReply, { status, headers, body }: Problem): FastifyReply =>
  reply.code(status).headers(headers).send(body);
