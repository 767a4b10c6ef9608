import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fastifyWebsocket from "@fastify/websocket";
import { until } from "@tapedeck/shared/testing/until";
import fastify from "fastify";
import { expect, it } from "vitest";
import { WebSocket } from "ws";
import { closedSignal, releaseRequest } from "./call-context.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

it("an open WebSocket holds neither its request nor its response, and its call ends with it", async () => {
  const app = fastify();
  await app.register(fastifyWebsocket);
  const signals: AbortSignal[] = [];
  const handshake: WeakRef<object>[] = [];
  app.addHook("onRequest", async (request, reply) => {
    signals.push(closedSignal(reply));
    handshake.push(...[request, request.raw, reply, reply.raw].map((one) => new WeakRef(one)));
  });
  app.get("/", { websocket: true }, (socket, request) => {
    releaseRequest(request, socket);
    socket.on("message", () => socket.send("answer"));
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const client = new WebSocket(`ws://127.0.0.1:${(app.server.address() as AddressInfo).port}`);
  const answered = new Promise((resolve) => client.once("message", resolve));
  client.once("open", () => client.send("question"));
  await answered;
  await until(
    async () => {
      collectGarbage();
      return handshake.every((one) => one.deref() === undefined);
    },
    { message: "the request to be collected" },
  );
  expect([handshake.length, signals.map(({ aborted }) => aborted)]).toEqual([4, [false]]);
  client.terminate();
  await until(() => signals.every(({ aborted }) => aborted), { message: "the call to be over" });
  await app.close();
});
