import { dirname } from "node:path";
import { type UpstreamName, upstreamNames } from "@tapedeck/shared/upstreams";
import { expect, it } from "vitest";
import { paths } from "./repository.ts";

/** What a person can take in at a glance. */
const maxFiles = 20;

/** Upstreams that have no stream of events and are polled. */
const polled: readonly UpstreamName[] = ["rkt", "vagrant"];

/**
 * The folders of the stages that have one folder for each upstream, and the files that each of these must have: the file
 * of the same name does the same for each upstream. `ofPolled` are those of the polled upstreams.
 */
const stages = [
  { stage: "packages/tap/src", files: ["tap.ts", "connection.ts"], ofPolled: ["methods.ts"] },
  {
    stage: "packages/fakes/src",
    files: ["server.ts", "recording.ts", "playback.ts", "answers.ts", "timed.ts", "main.ts"],
    ofPolled: ["calls.ts", "client.ts"],
  },
  {
    stage: "services/ingest/src/normalize",
    files: ["normalizer.ts", "mask.ts"],
    ofPolled: ["observing.ts", "masked-entries.ts"],
  },
  {
    stage: "services/query/src/views",
    files: ["fold.ts", "evolve.ts", "state.ts", "rows.ts", "tables.ts"],
    ofPolled: [],
  },
  { stage: "services/gateway/src/apis", files: ["methods.ts", "errors.ts", "state.ts"], ofPolled: [] },
];

/** Folders that have one file for each upstream. */
const filesByUpstream = [
  (upstream: UpstreamName) => `services/gateway/src/apis/${upstream}/${upstream}-api.ts`,
  (upstream: UpstreamName) => `services/gateway/src/transports/grpc/${upstream}-service.ts`,
  (upstream: UpstreamName) => `packages/cli/src/commands/state/${upstream}.ts`,
];

it("no folder has more production files than a person can take in", () => {
  const production = paths.filter(
    (path) => /\.(css|mjs|proto|tsx?)$/.test(path) && !/\.(test|contract)\.tsx?$|\/testing\//.test(path),
  );
  const folders = Map.groupBy(production, (path) => dirname(path));
  const crowded = [...folders].filter(([, files]) => files.length > maxFiles);
  expect(crowded.map(([folder, files]) => `${folder}: ${files.length}`)).toEqual([]);
  expect(folders.size).toBeGreaterThan(100);
});

it.each(stages)("$stage has the same files for each upstream", ({ stage, files, ofPolled }) => {
  const expected = upstreamNames.flatMap((upstream) =>
    [...files, ...(polled.includes(upstream) ? ofPolled : [])].map((file) => `${stage}/${upstream}/${file}`),
  );
  expect(expected.filter((path) => !paths.includes(path))).toEqual([]);
});

it("where a stage has one file for each upstream, it is named after the upstream", () => {
  const expected = upstreamNames.flatMap((upstream) => filesByUpstream.map((path) => path(upstream)));
  expect(expected.filter((path) => !paths.includes(path))).toEqual([]);
});
