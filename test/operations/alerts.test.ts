import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { testCertificate } from "@tapedeck/shared/testing/certificates";
import { expect, inject, it } from "vitest";
import { startStack } from "../stack/stack.ts";
import { readAlerts, selectorsIn } from "./alerts.ts";

/** Prometheus itself makes this metric, and these labels. */
const ofPrometheus = { metric: "up", labels: ["job", "instance"] };

it("every metric and label in the alerts is one that the services serve", async () => {
  const recording = loadRecording(
    join(import.meta.dirname, "../../packages/fakes/recordings/skaffold/04-deploy-failure-then-recovery"),
  );
  await using fake = await startFakeSkaffold({ recording });
  const { certFile, keyFile } = await testCertificate(await mkdtemp(join(inject("serversFolder"), "tls-")));
  const env = {
    TAPEDECK_SERVICES_TLS_CERT: certFile,
    TAPEDECK_SERVICES_TLS_KEY: keyFile,
    TAPEDECK_SERVICES_TLS_CA: certFile,
    TAPEDECK_QUERY_GRPC_HOST: "localhost",
    TAPEDECK_INGEST_GRPC_HOST: "localhost",
  };
  await using stack = await startStack({ skaffold: [{ address: fake.address }], env });
  await fake.play();
  await stack.drained({ address: fake.address, said: fake.said });
  const places = [stack.ingestHealth, stack.queryHealth, stack.http];
  const texts = await Promise.all(places.map(async (at) => (await fetch(`http://${at}/metrics`)).text()));
  const served = new Set(texts.flatMap((text) => [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = ""]) => name)));
  const labels = new Map<string, Set<string>>();
  for (const [, name = "", within = ""] of texts.join("\n").matchAll(/^([a-z]\w*)\{(.*)\} \S+$/gm)) {
    const known = labels.get(name) ?? new Set(ofPrometheus.labels);
    labels.set(name, known);
    for (const [, label = ""] of within.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) known.add(label);
  }

  const alerts = await readAlerts();
  const selectors = alerts.flatMap(({ alert, expr }) => selectorsIn(expr).map((each) => ({ alert, ...each })));
  expect(alerts.length).toBeGreaterThan(10);
  expect(new Set(selectors.map(({ alert }) => alert)).size).toBe(alerts.length);
  expect(selectors.filter(({ metric }) => !served.has(metric) && metric !== ofPrometheus.metric)).toEqual([]);
  // A metric without any value yet has no labels to compare.
  const unknown = selectors.flatMap(({ alert, metric, labels: wanted }) =>
    wanted.filter((label) => labels.get(metric)?.has(label) === false).map((label) => ({ alert, metric, label })),
  );
  expect(unknown).toEqual([]);
  expect(labels.get("tapedeck_ready")).toEqual(new Set([...ofPrometheus.labels, "check", "service"]));
});

it("names the metrics and labels of an expression", () => {
  expect(selectorsIn('sum by (instance, outcome) (increase(a_total{what="x", source=~".+"}[10m])) > 10')).toEqual([
    { metric: "a_total", labels: ["what", "source", "instance", "outcome"] },
  ]);
  expect(selectorsIn("a > 0 unless a == (b offset 1d)").map(({ metric }) => metric)).toEqual(["a", "a", "b"]);
});
