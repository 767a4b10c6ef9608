import { headers, type Msg, NoRespondersError } from "nats";
import { expect, it } from "vitest";
import { silentLogger } from "../../service/logger.ts";
import { connectNats } from "../../service/nats.ts";
import { startTestNats } from "../../testing/nats.ts";
import { until } from "../../testing/until.ts";
import { publishRequests } from "./publish-requests.ts";

const never = 600_000;
const bytes = (text: string) => new TextEncoder().encode(text);

async function harness() {
  const server = await startTestNats();
  const nats = await connectNats("ingest", { url: server.url }, silentLogger);
  const requests: Msg[] = [];
  nats.subscribe("requests", { callback: (_, message) => void requests.push(message) });
  await nats.flush();
  return {
    nats,
    requests,
    request: (text: string, timeoutMs = never) =>
      publishRequests(nats).request("requests", bytes(text), headers(), timeoutMs),
    [Symbol.asyncDispose]: async () => {
      await nats.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

it("each request gets its own answer, in whatever order answers come", async () => {
  await using own = await harness();
  const answers = ["a", "b", "c"].map(async (text) => (await own.request(text)).string());
  await until(() => own.requests.length === 3, { message: "all requests" });
  for (const message of own.requests.reverse()) message.respond(`${message.string()} answered`);
  expect(await Promise.all(answers)).toEqual(["a answered", "b answered", "c answered"]);
});

it("a request without an answer in time is rejected, and others still get theirs", async () => {
  await using own = await harness();
  const late = own.request("late", 1);
  const answered = own.request("answered");
  await expect(late).rejects.toThrow("did not answer within 1 ms");
  const [first, second] = await until(() => own.requests.length === 2 && own.requests, { message: "both requests" });
  first?.respond("too late");
  second?.respond("well");
  expect((await answered).string()).toBe("well");
});

it("a request on a subject to which nobody listens is rejected at once", async () => {
  await using own = await harness();
  const request = publishRequests(own.nats).request("nobody", bytes("x"), headers(), never);
  await expect(request).rejects.toBeInstanceOf(NoRespondersError);
});

it("a request that waits when the connection is closed is rejected, and so is a later one", async () => {
  await using own = await harness();
  const waiting = own.request("waiting");
  await own.nats.flush();
  void own.nats.close();
  await expect(waiting).rejects.toThrow("closed");
  await expect(own.request("later")).rejects.toThrow(/closed/i);
});
