import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it, vi } from "vitest";
import { jsonObject, sinkCommand } from "./command.ts";
import { retriedText } from "./run.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const delivered = { position: "1", outcome: "delivered" as const, status: 200, error: null };
const unsent = { ...delivered, status: null };
const refused = { ...delivered, outcome: "refused" as const, status: 400, error: "answered 400" };
const away = { ...delivered, outcome: "away" as const, status: 503, error: "answered 503" };

it.each([
  ["delivered 2 of 2", [delivered, delivered], 0],
  ["delivered 0 of 6, 5 refused, 1 had nothing to send", [unsent, ...Array(5).fill(refused)], 0],
  ["delivered 1 of 6, 1 refused, 4 wait", [delivered, refused, away], 3],
  ["delivered 0 of 1, 1 waits", [away], 0],
])("a retry of parked events says %j", (text, items, left) => {
  expect(retriedText({ items, left })).toBe(text);
});

it("a template that is no JSON is refused with the place where it breaks", () => {
  expect(jsonObject('{"text": "{{text}}"}')).toEqual({ text: "{{text}}" });
  expect(() => jsonObject('{"text": "{{text}}",}')).toThrow(
    /^Expected a JSON object, such as \{"content": "\{\{text\}\}"\}: .*position 20/,
  );
  expect(() => jsonObject('["{{text}}"]')).toThrow(/^Expected a JSON object, such as \S+ "\S+"\}\.$/);
});

it("a sink that TAPEDECK_SOURCE narrows says that, and one of a flag does not", async () => {
  const bodies: unknown[] = [];
  const server = createServer(async (request, response) => {
    bodies.push(JSON.parse(Buffer.concat(await request.toArray()).toString()));
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ name: "ci", target: "https://hooks.example", position: "383600-t3k9x2" }));
  });
  await using stack = new AsyncDisposableStack();
  stack.defer(() => server.closeAllConnections());
  stack.defer(() => void server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const errors = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const add = async (...flags: readonly string[]) => {
    errors.mockClear();
    await sinkCommand().parseAsync(["add", "ci", "https://hooks.example/", "--url", url, ...flags], { from: "user" });
    return errors.mock.calls.join("");
  };
  vi.stubEnv("TAPEDECK_SOURCE", "alice/shop");
  expect(await add()).toMatch(/only events of alice\/shop, as TAPEDECK_SOURCE is set/);
  expect(await add("--source", "bob/shop")).toBe("");
  expect(bodies).toMatchObject([{ filter: { sources: ["alice/shop"] } }, { filter: { sources: ["bob/shop"] } }]);
});
