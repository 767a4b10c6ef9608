import { join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { spansOf } from "@tapedeck/gateway/sinks/testing/received-spans";
import { startReceiver } from "@tapedeck/gateway/sinks/testing/receiver";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startStack } from "./stack.ts";

/** Failures of each sort: of a render, of a deploy, of builds, of tests, and of a sync that is tried again. */
const played = [
  "04-deploy-failure-then-recovery",
  "10-status-check-port-forward-sync-app-logs",
  "27-dev-build-fails-beside-others",
  "31-dev-compilers-and-tests-fail",
];

type ListedOperation = {
  readonly session: string;
  readonly runner: number;
  readonly loop: number;
  readonly kind: string;
  readonly subject?: string;
  readonly outcome: string | null;
  readonly cacheHit?: boolean;
};

const results: Readonly<Record<string, string>> = {
  succeeded: "success",
  failed: "failure",
  canceled: "cancellation",
  unknown: "cancellation",
};

it("traces of recordings have the operations that the tables have, and each span that began has its end", async () => {
  await using cleanup = new AsyncDisposableStack();
  const fakes = await Promise.all(
    played.map(async (name) =>
      cleanup.use(await startFakeSkaffold({ recording: loadRecording(join(recordings.skaffold, name)) })),
    ),
  );
  const skaffold = fakes.map(({ address }, index) => ({ address, developer: `dev${index}`, project: "shop" }));
  const receiver = cleanup.use(await startReceiver());
  const sinks = [
    { name: "whole", live: false },
    { name: "live", live: true },
  ].map(({ name, live }) => ({ name, live, target: `${receiver.url}/${name}`, format: "otlp", start: "start" }));
  const env = { TAPEDECK_GATEWAY_SINK_HOSTS: "127.0.0.1", TAPEDECK_SINKS: JSON.stringify(sinks) };
  const stack = cleanup.use(await startStack({ skaffold, env }));
  const count = async (kind: string) => {
    const { body } = await stack.httpCall("GET", `/api/v1/events?after=start&limit=1000&kind=${kind}`);
    const { items } = JSON.parse(body) as { readonly items: readonly { readonly source: string }[] };
    return new Set(items.map(({ source }) => source)).size === fakes.length;
  };
  await until(() => count("upstream.connected"), { message: "all to be connected" });
  await Promise.all(fakes.map((fake) => fake.play()));
  await stack.drained(...fakes);
  await Promise.all(fakes.map((fake) => fake.end("kill")));
  await until(() => count("session.ended"), { message: "all sessions to end" });
  await stack.caughtUp();
  const { body } = await stack.httpCall("GET", "/api/v1/operations?limit=1000");
  const { items } = JSON.parse(body) as { readonly items: readonly ListedOperation[] };
  const listed = items.filter(({ loop }) => loop > 0).map(textOfOperation);
  expect(listed.length).toBeGreaterThan(80);

  const spans = (name: string) =>
    receiver.requests.filter(({ path }) => path.endsWith(`/${name}`)).flatMap((request) => spansOf(request));
  for (const name of ["whole", "live"]) {
    const newest = () => new Map(spans(name).map((one) => [`${one.traceId} ${one.spanId}`, one]));
    await until(() => newest().size >= listed.length, { message: `all spans at ${name}` });
    const all = [...newest().values()];
    expect(all.map(textOfSpan).toSorted(), name).toEqual(listed.toSorted());
    expect(all.filter(({ span }) => span.end_time_unix_nano === 0n)).toEqual([]);
  }
});

function textOfOperation({ session, runner, loop, kind, subject = "", outcome, cacheHit }: ListedOperation): string {
  const result = cacheHit === true ? "skip" : results[outcome ?? ""];
  return [`${session}.${runner}.${loop}`, kind, subject, result].join(" ");
}

function textOfSpan({ resource, attributes }: ReturnType<typeof spansOf>[number]): string {
  const result = attributes["cicd.pipeline.result"] ?? attributes["cicd.pipeline.task.run.result"];
  return [
    resource["cicd.pipeline.run.id"],
    attributes["tapedeck.kind"],
    attributes["tapedeck.subject"] ?? "",
    result,
  ].join(" ");
}
