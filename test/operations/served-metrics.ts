import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { testCertificate } from "@tapedeck/shared/testing/certificates";
import { inject } from "vitest";
import { startStack } from "../stack/stack.ts";

/** What /metrics of ingest, query and the gateway answer when a Skaffold was recorded, with TLS between them. */
export async function servedMetrics(): Promise<readonly string[]> {
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
  return await Promise.all(places.map(async (at) => (await fetch(`http://${at}/metrics`)).text()));
}

/** The names of all metrics in such answers. */
export function namesOf(texts: readonly string[]): readonly string[] {
  return texts.flatMap((text) => [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = ""]) => name));
}
