import { Client, credentials, Metadata, type ServerDuplexStream, type StatusObject } from "@grpc/grpc-js";
import { fromUnknown, TapedeckError } from "@tapedeck/shared/errors/errors";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Caller, type Role, revocationOf } from "../../call-context.ts";
import { defaultLimits } from "../../limits/settings.ts";
import { callerOf } from "./authentication.ts";
import { asBytes } from "./byte-methods.ts";
import { contextOf } from "./call-context.ts";
import { type GrpcServices, grpcServer } from "./server.ts";
import { callSignal } from "./server-stream.ts";

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
let client: Client;
/** The caller that each authorization stands for. */
const callers = new Map<string, Partial<Caller>>();

/** What the handlers came to know, by who called. */
const calls: Caller[] = [];
const messages: [who: string, text: string][] = [];
const ends: [who: string, reason: string | undefined][] = [];

/** A service of one method, which says every message back. */
function echo(name: string, role?: Role): GrpcServices {
  const say = (call: ServerDuplexStream<Buffer, Buffer>) => {
    const caller = callerOf(call);
    const { signal } = contextOf(call.metadata, { ...caller, signal: callSignal(call) });
    signal.addEventListener("abort", () => {
      ends.push([caller.who, revocationOf(signal)?.message]);
      call.write(Buffer.from("too late"));
    });
    calls.push(caller);
    call.on("data", (message: Buffer) => {
      messages.push([caller.who, String(message)]);
      call.write(message);
    });
  };
  const definition = { say: { path: `/${name}/Say`, requestStream: true, responseStream: true, ...asBytes } };
  return { definition, handlers: { say }, names: [name], ...(role !== undefined && { role }) };
}

beforeAll(async () => {
  const services = [echo("test.Echo"), echo("test.recorder", "recorder"), echo("test.admin", "admin")];
  const server = stack.use(
    await grpcServer({ host: "127.0.0.1", port: 0 }, services, {
      authenticate: async ({ authorization: who = "" }) => {
        const caller = callers.get(who);
        if (caller === undefined) throw new TapedeckError("unauthenticated", "who are you?");
        return { workspace: "acme", who, kind: "token", ...caller };
      },
      failed: fromUnknown,
      limits: defaultLimits.grpc,
    }),
  );
  client = new Client(server.address, credentials.createInsecure());
  stack.defer(() => client.close());
});

function open(who: string, service = "test.Echo") {
  const metadata = new Metadata();
  metadata.set("authorization", who);
  const { requestSerialize, responseDeserialize } = asBytes;
  const call = client.makeBidiStreamRequest(`/${service}/Say`, requestSerialize, responseDeserialize, metadata);
  const received: string[] = [];
  call.on("data", (message: Buffer) => received.push(String(message))).on("error", () => {});
  const end = new Promise<StatusObject>((resolve) => call.on("status", resolve));
  const say = (text: string) => call.write(Buffer.from(text));
  return { received, end, say, pause: () => call.pause(), resume: () => call.resume() };
}

it("a handler knows of no call that is not let in, though it was not asked to ask", async () => {
  const call = open("nobody");
  call.say("hello");
  expect(await call.end).toMatchObject({ code: 16, details: "who are you?" });
  expect([...calls, ...messages, ...ends]).toEqual([]);
});

it("and of one that is let in, who makes it", async () => {
  callers.set("alice", { token: "1" });
  const call = open("alice");
  call.say("hello");
  await until(() => call.received.length === 1, { message: "the echo" });
  expect(calls).toEqual([{ workspace: "acme", who: "alice", kind: "token", token: "1" }]);
});

it.each([
  ["test.Echo", ["viewer"], true],
  ["test.Echo", ["controller"], true],
  ["test.Echo", ["admin"], true],
  ["test.Echo", ["recorder"], false],
  ["test.recorder", ["viewer", "controller"], false],
  ["test.recorder", ["recorder"], true],
  ["test.recorder", ["admin"], true],
  ["test.admin", ["viewer", "controller", "recorder"], false],
] as [string, Role[], boolean][])("%s takes those with %j: %s", async (service, roles, isTaken) => {
  const who = `${service} ${roles.join(" ")}`;
  callers.set(who, { roles: new Set(roles) });
  const call = open(who, service);
  if (isTaken) await until(() => calls.some((caller) => caller.who === who), { message: "the call" });
  else expect(await call.end).toMatchObject({ code: 7, details: expect.stringMatching(/needs a token with the role/) });
});

it("when its token is over a call is: its handler hears no more, its client neither", async () => {
  const revoked = new AbortController();
  for (const who of ["reader", "stalled"]) callers.set(who, { revoked: revoked.signal });
  const [reading, stalled] = [open("reader"), open("stalled")];
  const received = () =>
    messages.filter(([who]) => who === "reader" || who === "stalled").map(([, text]) => text.slice(0, 5));
  reading.say("hello");
  // Reads nothing of what it hears, so that the end waits behind it.
  stalled.pause();
  stalled.say("hello".repeat(400_000));
  await until(() => received().length === 2 && reading.received.length === 1, { message: "both to be heard" });
  revoked.abort(new TapedeckError("unauthenticated", "the token was revoked"));
  for (const call of [reading, stalled]) call.say("more");
  expect(await reading.end).toMatchObject({ code: 16, details: "the token was revoked" });
  // What is said later on the same connection has come, so that has come too.
  const after = open("alice");
  after.say("hello");
  await until(() => after.received.length === 1, { message: "the echo" });
  expect(received()).toEqual(["hello", "hello"]);
  stalled.resume();
  expect(await stalled.end).toMatchObject({ code: 16, details: "the token was revoked" });
  expect(reading.received).toEqual(["hello"]);
  expect(stalled.received).not.toContain("too late");
  for (const who of ["reader", "stalled"]) expect(ends).toContainEqual([who, "the token was revoked"]);
});

it("one whose token is over before it is let in is not", async () => {
  callers.set("late", { revoked: AbortSignal.abort(new TapedeckError("unauthenticated", "the token was revoked")) });
  expect(await open("late").end).toMatchObject({ code: 16 });
  expect(calls.some(({ who }) => who === "late")).toBe(false);
});
