import { connect, createServer } from "node:net";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { recordedShop } from "./recorded-shop.ts";

// Commands that read, as people and scripts type them. More forms of times in commands.long.test.ts.

const shop = recordedShop();
const { start, tapedeck } = shop;

type Page = {
  readonly items: readonly { readonly kind: string; readonly position: string }[];
  readonly position: string;
};
const events = async (kind: string): Promise<Page> =>
  JSON.parse((await shop.stack.httpCall("GET", `/api/v1/events?kind=${kind}&limit=1000`)).body);

/** A proxy to the gateway that holds back WebSockets until it is opened. */
async function gate() {
  const opened = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  const server = createServer((near) => {
    const far = connect(Number(shop.stack.http.split(":").at(-1)), "127.0.0.1");
    for (const socket of [near, far]) socket.on("error", () => {});
    near.on("data", (bytes) => {
      if (!/^upgrade: websocket/im.test(String(bytes))) return void far.write(bytes);
      arrived.resolve();
      void opened.promise.then(() => far.write(bytes));
    });
    far.pipe(near);
    near.on("close", () => far.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    arrived: arrived.promise,
    open: opened.resolve,
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}

it("wait misses nothing that happens between its call and its subscription", async () => {
  await shop.fake.playUntil({ v1: 3 });
  await until(async () => (await events("build.started")).items.length > 0, { message: "the beginning" });
  await using way = await gate();
  await using waiting = start(
    ["wait", "--for", "loop.*", "--or-fail", "build.canceled", "--timeout", "50s", "--json"],
    way.url,
  );
  await way.arrived;
  const before = (await events("loop.*")).items.length;
  await shop.fake.play();
  await until(async () => (await events("loop.*")).items.length > before, { message: "a loop to end" });
  way.open();
  expect([await waiting.ended, waiting.stderr()]).toEqual([0, ""]);
  // The first of all the events after the call.
  expect(JSON.parse(waiting.stdout())).toMatchObject({ position: (await events("loop.*")).items[before]?.position });
});

it("wait reports the result by its exit code, and can continue after a position", async () => {
  const first = (await events("loop.succeeded")).items[0];
  const came = await tapedeck("wait", "--for", "loop.succeeded", "--after", "start", "-s", "alice/shop");
  expect(came).toMatchObject({ code: 0, err: "", out: expect.stringMatching(/alice\/shop +loop\.succeeded/) });
  const failed = await tapedeck(
    "wait",
    "--for",
    "loop.succeeded",
    "--or-fail",
    "build.*",
    "--after",
    "start",
    "--json",
  );
  expect(failed.code).toBe(1);
  expect(JSON.parse(failed.out)).toMatchObject({ kind: "build.started" });
  const { position } = await events("loop.succeeded");
  expect(first?.position).not.toBe(position);
  expect(await tapedeck("wait", "--for", "loop.succeeded", "--after", position, "--timeout", "100ms")).toEqual({
    code: 124,
    out: "",
    err: `tapedeck: no matching event came in time; continue with --after ${position}\n`,
  });
  expect(await tapedeck("wait", "--for", "loop.*", "-s", "nosuch/x", "--timeout", "100ms")).toMatchObject({
    code: 124,
    err: expect.stringMatching(/^nothing has been recorded for nosuch\/x: `tapedeck status` lists all\n/),
  });
  expect(await tapedeck("wait", "--for", "nothing.like_it")).toMatchObject({
    code: 1,
    err: expect.stringContaining("nothing.like_it"),
  });
});

it("logs prints the output of the requested source without control characters", async () => {
  const all = await tapedeck("logs", "-s", "alice/shop");
  expect(all).toMatchObject({ code: 0, err: "" });
  const lines = all.out.trimEnd().split("\n");
  expect(lines.length).toBeGreaterThan(30);
  expect(all.out).not.toMatch(/[^\P{Cc}\n\t]/u);
  const origins = new Set(lines.map((line) => /^(\S+) \| /.exec(line)?.[1] ?? ""));
  const [app = "none"] = [...origins].filter((origin) => origin !== "");
  const some = await tapedeck("logs", "-s", "alice/shop", "--artifact", app);
  expect(some.out.trimEnd().split("\n")).toEqual(lines.filter((line) => line.startsWith(`${app} | `)));
  expect((await tapedeck("logs", "-n", "2")).out.trimEnd().split("\n")).toEqual(lines.slice(-2));
  expect((await tapedeck("logs", "--app", "nobody")).err).toBe("no output matches\n");
  await using following = start(["logs", "-f", "-n", "1"]);
  await until(() => following.stdout() === `${lines.at(-1)}\n`, { message: "the last line" });
});

it("search finds a text with its line, and lists what filters leave", async () => {
  const { items } = JSON.parse((await tapedeck("search", "--kind", "loop", "--json")).out) as Page;
  expect(items.length).toBeGreaterThan(0);
  const listed = await tapedeck("search", "--kind", "loop", "-s", "alice/shop");
  expect(listed).toMatchObject({ code: 0, err: "" });
  expect(listed.out.trimEnd().split("\n")).toHaveLength(items.length + 1);
  const found = await tapedeck("search", "alice", "nowhere", "to", "be", "found");
  expect(found).toEqual({ code: 0, out: "No matches.\n", err: "" });
  const [artifact = ""] = (items[0] as { readonly artifacts?: readonly string[] }).artifacts ?? [];
  expect((await tapedeck("search", artifact)).out).toMatch(new RegExp(`^\\d+ match(es)?:\n[^]*artifact: ${artifact}`));
  expect(await tapedeck("search", "a b")).toMatchObject({ code: 1, err: expect.stringContaining("three letters") });
});

it("says that a source is not known, which may be mistyped", async () => {
  const err = "nothing has been recorded for nosuch/x: `tapedeck status` lists all\n";
  for (const words of [["loops"], ["sessions"], ["stats", "builds"], ["stats", "loops"]]) {
    const out = expect.stringMatching(/^No matching /);
    expect(await tapedeck(...words, "-s", "nosuch/x")).toEqual({ code: 0, out, err });
  }
  expect((await tapedeck("loops", "-s", "alice/shop", "--outcome", "canceled")).err).toBe("");
  // They wait for what comes.
  for (const words of [["tail"], ["tail", "--since", "10m"], ["watch"]]) {
    await using waiting = start([...words, "-s", "nosuch/x"]);
    await until(() => waiting.stderr() === err, { message: `the name of the source, of ${words.join(" ")}` });
  }
});

it("says since when there is a state, to who asks for an earlier one", async () => {
  expect((await tapedeck("state", "-s", "alice/shop", "--at", "yesterday")).err).toMatch(
    /alice\/shop\/skaffold begins at \S+, which was recorded at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\n$/,
  );
});

it("says which folder an export has no place in, and that nobody answers where a page is to be opened", async () => {
  expect(await tapedeck("export", "-s", "alice/shop", "-o", "/nosuch/shop.gz")).toEqual({
    code: 1,
    out: "",
    err: "tapedeck: there is no folder /nosuch to write to.\n",
  });
  expect((await tapedeck("open")).out).toBe(`http://${shop.stack.http}/\n`);
  await using opening = start(["open"], "http://127.0.0.1:1");
  expect([await opening.ended, opening.stdout()]).toEqual([1, ""]);
  expect(opening.stderr()).toContain("no Tapedeck server answers at http://127.0.0.1:1");
});

it("times may be written as people write them", async () => {
  expect((await tapedeck("sessions", "--since", "10m")).out).toContain("alice/shop");
  expect((await tapedeck("sessions", "--until", "yesterday")).out).toBe("No matching sessions.\n");
  expect((await tapedeck("tail", "--since", "10m", "--no-follow", "-k", "loop.started")).out).toContain(
    "loop 1 started",
  );
  expect((await tapedeck("tail", "--since", "soon")).err).toContain('Expected "10m", "2h" or "3d" (that long ago)');
});

it("shell completion knows commands, flags and source names", async () => {
  const words = async (...line: string[]) =>
    (await tapedeck("complete", "--", ...line)).out.split("\n").map((row) => row.split("\t")[0]);
  expect(await words("sta")).toEqual(expect.arrayContaining(["status", "state", "stats"]));
  expect(await words("tail", "--si")).toContain("--since");
  // A shell waits half a second for names, which a busy machine may need for the request alone.
  const named = async () => (await words("logs", "-s", "")).includes("alice/shop");
  await until(named, { message: "the name of the source" });
  for (const shell of ["bash", "zsh", "fish"]) expect((await tapedeck("completion", shell)).out).toContain("tapedeck");
});

it("doctor finds the Tapedeck that commands use, and fails where there is none", async () => {
  const well = await tapedeck("doctor", "--json");
  expect(well.code).toBe(0);
  const { findings } = JSON.parse(well.out) as { findings: { check: string; state: string }[] };
  const states = Object.fromEntries(findings.map(({ check, state }) => [check, state]));
  expect(states).toMatchObject({
    HTTP: "ok",
    gRPC: "ok",
    version: "ok",
    token: "ok",
    clock: "ok",
    disk: expect.any(String),
  });
  const ill = await tapedeck("doctor", "--url", "http://127.0.0.1:59999");
  expect(ill).toMatchObject({ code: 1, out: expect.stringMatching(/^fail +HTTP .*\n +→ start it/m) });
});
