import { getEventListeners, once } from "node:events";
import { createServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { testCertificate } from "@tapedeck/shared/testing/certificates";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { version } from "@tapedeck/shared/version";
import { afterEach, expect, it, vi } from "vitest";
import { type Receiver, startReceiver } from "../testing/receiver.ts";
import { HttpTarget } from "./http-target.ts";

let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

const never = new AbortController().signal;
const body = Buffer.from("[]");

async function targetOf(urlOf: (receiver: Receiver) => string, allowed: readonly string[], timeoutMs = 10_000) {
  const receiver = stack.use(await startReceiver());
  const target = stack.use(new HttpTarget({ url: urlOf(receiver), allowed, timeoutMs }));
  return { receiver, target };
}

it("posts to a host that the settings allow, over one connection", async () => {
  const { receiver, target } = await targetOf(({ url }) => url, ["127.0.0.1"]);
  receiver.answer = () => ({ status: 202, body: "taken", headers: { "retry-after": "3" } });
  const answers = [
    await target.post({ body, headers: { "x-one": "1" } }, never),
    await target.post({ body, headers: {} }, never),
  ];
  expect(answers[0]).toMatchObject({ type: "answer", status: 202, retryAfter: "3", body: Buffer.from("taken") });
  expect(receiver.requests[0]?.headers).toMatchObject({ "x-one": "1", "content-length": "2" });
  expect(receiver.connections).toBe(1);
});

it("says what it is, unless the sink has a header that does", async () => {
  const { receiver, target } = await targetOf(({ url }) => url, ["127.0.0.1"]);
  for (const headers of [{}, { "User-Agent": "ours" }]) await target.post({ body, headers }, never);
  expect(receiver.requests.map(({ headers: sent }) => sent["user-agent"])).toEqual([`tapedeck/${version}`, "ours"]);
});

it("does not follow a redirect", async () => {
  const { receiver, target } = await targetOf(({ url }) => url, ["127.0.0.1"]);
  const other = stack.use(await startReceiver());
  receiver.answer = () => ({ status: 307, headers: { location: other.url } });
  expect(await target.post({ body, headers: {} }, never)).toMatchObject({ type: "answer", status: 307 });
  expect(other.requests).toEqual([]);
});

it("refuses a name with each connection, if none of its addresses is public", async () => {
  const { receiver } = await targetOf(({ url }) => url, ["127.0.0.1"]);
  const found = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1"];
  const lookUp = async () => found.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  const url = `https://hooks.example:${receiver.port}/`;
  const target = stack.use(new HttpTarget({ url, allowed: [], lookUp }));
  const refusal = {
    type: "failure",
    reached: false,
    error: expect.stringMatching(/hooks.example is not a public address/),
  };
  expect(await target.post({ body, headers: {} }, never)).toEqual(refusal);
  expect(receiver.connections).toBe(0);
});

it("resolves a name once for a connection, and connects to what it was checked as", async () => {
  const { receiver } = await targetOf(({ url }) => url, ["127.0.0.1"]);
  const answers = ["127.0.0.1", "192.0.2.1"];
  let lookups = 0;
  const lookUp = async () => [{ address: answers[lookups++] ?? "", family: 4 }];
  const url = `http://hooks.example:${receiver.port}/`;
  const target = stack.use(new HttpTarget({ url, allowed: ["hooks.example"], lookUp }));
  for (let times = 0; times < 3; times++)
    expect(await target.post({ body, headers: {} }, never)).toMatchObject({ status: 204 });
  expect(lookups).toBe(1);
  expect(receiver.requests[0]?.headers.host).toBe(`hooks.example:${receiver.port}`);
});

it("says whether a request that failed may have arrived", async () => {
  const { receiver, target } = await targetOf(({ url }) => url, ["127.0.0.1"], 300);
  receiver.answer = () => undefined;
  expect(await target.post({ body, headers: {} }, never)).toEqual({
    type: "failure",
    error: "no answer in 1 s",
    reached: true,
  });
  await receiver.kill();
  expect(await target.post({ body, headers: {} }, never)).toMatchObject({ type: "failure", reached: false });
});

it("tries a connection once more that its target has closed while it was idle", async () => {
  const { receiver, target } = await targetOf(({ url }) => url, ["127.0.0.1"]);
  await target.post({ body, headers: {} }, never);
  await receiver.kill();
  await receiver.start();
  expect(await target.post({ body, headers: {} }, never)).toMatchObject({ type: "answer", status: 204 });
});

it("settles with the status of an answer whose body does not end, or breaks off, and with what came of it", async () => {
  const { receiver, target } = await targetOf(({ url }) => url, ["127.0.0.1"], 300);
  for (const isBroken of [false, true]) {
    receiver.answer = () => ({ status: 202, body: "taken", endless: isBroken ? "broken" : "open" });
    const answer = await target.post({ body, headers: {} }, never);
    expect(answer).toMatchObject({ type: "answer", status: 202, body: Buffer.from("taken"), isCut: true });
  }
  receiver.answer = () => ({ status: 204 });
  expect(await target.post({ body, headers: {} }, never)).not.toHaveProperty("isCut");
});

it("reads the beginning of a long answer, and says that there is more", async () => {
  const { receiver, target } = await targetOf(({ url }) => url, ["127.0.0.1"]);
  const kibibytes = (count: number) => Buffer.alloc(count * 1_024, "x");
  for (const [sent, isLong] of [
    [kibibytes(16), undefined],
    [kibibytes(17), true],
    [kibibytes(2_000), true],
  ] as const) {
    receiver.answer = () => ({ status: 200, body: sent });
    const answer = await target.post({ body, headers: {} }, never);
    expect(answer).toMatchObject({ type: "answer", status: 200, body: kibibytes(16) });
    expect(answer.type === "answer" && answer.isLong).toBe(isLong);
  }
});

it("settles with the status of a target that changes to another protocol, and can be asked again", async () => {
  const server = createTcpServer((socket) => {
    const head = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket", "", ""];
    socket.on("data", () => socket.write(head.join("\r\n"))).on("error", () => {});
  });
  stack.defer(() => void server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const target = stack.use(new HttpTarget({ url, allowed: ["127.0.0.1"] }));
  for (let times = 0; times < 2; times++)
    expect(await target.post({ body, headers: {} }, never)).toMatchObject({ type: "answer", status: 101 });
});

it("says what to do about a certificate whose authority is unknown", async () => {
  const { folder } = stack.use(await temporaryFolder());
  const { cert, key } = await testCertificate(folder);
  const server = createServer({ cert, key }, (_, response) => response.end());
  stack.defer(() => void server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const target = stack.use(new HttpTarget({ url, allowed: ["127.0.0.1"] }));
  expect(await target.post({ body, headers: {} }, never)).toMatchObject({
    type: "failure",
    error: expect.stringMatching(
      /^its certificate is not trusted \([^;]+\): set NODE_EXTRA_CA_CERTS of the gateway to/,
    ),
  });
});

it("leaves nothing on a signal that outlives its requests", async () => {
  const { target } = await targetOf(({ url }) => url, ["127.0.0.1"]);
  const lasting = new AbortController().signal;
  const any = vi.spyOn(AbortSignal, "any");
  stack.defer(() => any.mockRestore());
  await target.post({ body, headers: {} }, lasting);
  expect(any).not.toHaveBeenCalled();
  expect(getEventListeners(lasting, "abort")).toEqual([]);
});
