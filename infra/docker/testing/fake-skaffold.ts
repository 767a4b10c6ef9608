import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { until } from "@tapedeck/shared/testing/until";
import { collect } from "tapedeck/testing/cli";

/** A stand-in Skaffold that has played a recording and stays. */
export async function startFake(recording: string): Promise<AsyncDisposable & { readonly port: number }> {
  const main = fileURLToPath(import.meta.resolve("@tapedeck/fakes/skaffold/main"));
  const fake = collect(
    spawn(process.execPath, [main, "--recording", recording, "--speed", "max"], { stdio: ["ignore", "pipe", "pipe"] }),
  );
  const line = await until(() => /\{.*\}/.exec(fake.stdout())?.[0], { message: "the stand-in Skaffold" });
  return {
    port: (JSON.parse(line) as { port: number }).port,
    [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose](),
  };
}
