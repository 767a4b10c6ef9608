import { ReadStateRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { expect, it } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { ProjectedPosition } from "../../projecting/progress.ts";
import { rktHost, rktSession, uuid } from "../../testing/rkt-scenario.ts";
import { projectUntil } from "../../testing/run-projection.ts";
import { scenario } from "../../testing/scenario.ts";
import { type Stage, stage } from "../../testing/stage.ts";
import { folds } from "../../views/folds.ts";
import { NewestStates } from "../../views/states/newest-states.ts";
import { views } from "../../views/views.ts";
import type { ApiDeps } from "../deps.ts";
import { countingProxy } from "../testing/counting-proxy.ts";
import { stateReader } from "./read-state.ts";

const heldBytes = 256 * 1024;
const annotation = { Key: "note", value: "x".repeat(3_000) };

/** A rkt host with so many pods of 3 KB each, and what reading one of its collections costs who `writes` the tables, or does not. */
async function hostOf(on: Stage, pods: number, { writes = false } = {}) {
  const script = scenario(rktHost);
  const host = rktSession("01A", script);
  host.began();
  host.imported({ id: "sha512-a", name: "example.com/a" });
  for (let n = 1; n <= pods; n++) host.seen({ id: uuid(n), annotations: [annotation] });
  const newest = new NewestStates();
  const project = async () => {
    const last = (await on.write(script.events.splice(0))).at(-1) ?? 0;
    await projectUntil(on.databaseUrl, on.log.reader, last, { views: views({ textRows: false, newest }) });
  };
  await project();
  await using cleanup = new AsyncDisposableStack();
  const proxy = cleanup.use(await countingProxy(on.databaseUrl));
  const database = cleanup.use(openDatabase({ url: proxy.url, connections: 1 }));
  let deps: ApiDeps = {
    database: () => database,
    log: () => on.log.reader,
    workspace: "acme",
    progress: new ProjectedPosition(),
    folds,
    ...(writes && { newest }),
  };
  let read = stateReader(folds, heldBytes);
  const answers = (collection: string, key_prefix = "") => {
    const request = ReadStateRequest.fromPartial({ workspace: "acme", source: rktHost, collection, key_prefix });
    return Array.fromAsync(read(deps, request, { signal: new AbortController().signal }));
  };
  const owned = cleanup.move();
  return {
    answers,
    /** Rows of a collection, and the bytes that Postgres has sent for them. */
    async read(collection: string, key_prefix = "") {
      const before = proxy.receivedBytes;
      const { length } = await answers(collection, key_prefix);
      return { rows: length - 1, bytes: proxy.receivedBytes - before };
    },
    /** Answers from the tables alone from now on. */
    forgets() {
      read = stateReader(folds, heldBytes);
      deps = { ...deps, newest: { of: () => [] } };
    },
    async changes(...pods: readonly number[]) {
      for (const n of pods) host.seen({ id: uuid(n), annotations: [annotation] });
      await project();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

it("an answer about a host itself, or its images, costs the same however many pods it has", async () => {
  await using on = await stage();
  await using host = await hostOf(on, 200);
  expect((await host.read("rkt.info")).bytes).toBeGreaterThan(600_000);
  for (const collection of ["rkt.info", "rkt.images", "rkt.info"]) {
    const { rows, bytes } = await host.read(collection);
    expect(rows).toBe(1);
    expect(bytes).toBeLessThan(2_000);
  }
  // The pods do not fit, and do not drive the others out.
  expect(await host.read("rkt.pods")).toMatchObject({ rows: 200 });
  expect((await host.read("rkt.images")).bytes).toBeLessThan(2_000);
});

it("an answer costs what it returns also at first after a change, where the tables were written", async () => {
  await using on = await stage();
  await using host = await hostOf(on, 200, { writes: true });
  for (const added of [201, 202]) {
    await host.changes(added);
    for (const [collection, key] of [["rkt.info"], ["rkt.images"], ["rkt.pods", uuid(added)]] as const) {
      const { rows, bytes } = await host.read(collection, key);
      expect(rows).toBe(1);
      expect(bytes).toBeLessThan(2_000);
    }
  }
});

it("a state that was written is answered as one that is read back", async () => {
  await using on = await stage();
  await using host = await hostOf(on, 20, { writes: true });
  await host.changes(3, 21);
  const collections = ["rkt.info", "rkt.images", "rkt.pods"];
  const written = await Promise.all(collections.map((collection) => host.answers(collection)));
  host.forgets();
  expect(await Promise.all(collections.map((collection) => host.answers(collection)))).toEqual(written);
  expect((await host.read("rkt.pods")).rows).toBe(21);
});

it("a pod of a host that is held costs no reading of the others", async () => {
  await using on = await stage();
  await using host = await hostOf(on, 50);
  expect(await host.read("rkt.pods", uuid(7))).toMatchObject({ rows: 1 });
  const { rows, bytes } = await host.read("rkt.pods", uuid(8));
  expect(rows).toBe(1);
  expect(bytes).toBeLessThan(2_000);
});
