import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { logStart } from "@tapedeck/shared/log/offset";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { urlOf } from "tapedeck/testing/recorder";
import { recordingFolder } from "tapedeck/testing/skaffold-program";
import { describe, expect, it } from "vitest";
import { portOf, Target } from "./run-target.ts";
import { patient, testRefused, testUndecided, type Undecided, type Wrong } from "./run-target-tests.ts";

// The check of `tapedeck run` with a team's gateway before a command. More answers in run-target.long.test.ts.

const on = new Target();

const wrong: readonly Wrong[] = [
  [
    "a token that nobody knows",
    () => ({ TAPEDECK_TOKEN: `tdk_${"x".repeat(43)}` }),
    /localhost:\d+ reports: this token is unknown: .*: provide a valid token with `tapedeck login` or TAPEDECK_TOKEN$/,
  ],
  ["no token", () => ({}), /reports: a token is needed: .*: provide a valid token/],
  [
    "a certificate that nobody trusts",
    async () => ({ ...(await on.good()), TAPEDECK_URL: urlOf((await on.proxied()).at) }),
    /the certificate at localhost:\d+ is not trusted \(.*\): set TAPEDECK_CA to the PEM file of its authority$/,
  ],
  [
    "the port of the gateway's HTTP",
    async () => ({ ...(await on.good()), TAPEDECK_GRPC_PORT: String(portOf(on.stack.http)) }),
    /localhost:\d+ is not the gRPC port of a Tapedeck server: check the address https:\/\/localhost:\d+ and, .*TAPEDECK_GRPC_PORT$/,
  ],
];

describe("a command whose recording would be refused runs unrecorded after one line that says why", () => {
  testRefused(on, wrong);
});

const undecided: readonly Undecided[] = [
  ["says nothing", async () => ({ TAPEDECK_URL: urlOf(`127.0.0.1:${await on.mute()}`) })],
  ["is not there", async () => ({ TAPEDECK_URL: urlOf("127.0.0.1:9") })],
];

/** The recorded frames of these laptops' project. */
async function framesInLog(): Promise<readonly Buffer[]> {
  const source = sourceName({ workspace: "acme", developer: "dora", project: "shop", upstream: "skaffold" });
  const subjects = [sourceFilter(source)];
  const frames: Buffer[] = [];
  const { reader } = await on.stack.logs.of("acme");
  const last = await reader.lastMatch(subjects);
  const { signal } = new AbortController();
  for await (const { event } of reader.history({ afterOffset: logStart, subjects }, last, signal)) {
    if (event.channel === "v1" && event.original) frames.push(event.original.bytes);
  }
  return frames;
}

describe("a command is recorded", () => {
  it("where the gateway accepts it, and the only message says so", async () => {
    const { run } = on.laptop({ ...patient, ...(await on.good()) });
    await using ran = run("skaffold", "dev");
    const said = loadRecording(recordingFolder("12-skaffold-build-one-shot")).messages.v1.map(({ bytes }) => bytes);
    await until(async () => (await framesInLog()).length >= said.length, { message: "all that was said in the log" });
    expect(await framesInLog()).toEqual(said);
    process.kill(ran.child.pid ?? 0, "SIGINT");
    expect(await ran.ended).toBe(0);
    expect(ran.stderr()).toMatch(/^tapedeck: recording as dora\/shop, session /);
    expect(ran.stderr()).not.toContain("not recorded:");
  });

  testUndecided(on, undecided);
});
