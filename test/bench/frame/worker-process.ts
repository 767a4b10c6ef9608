import { flushCompileCache } from "node:module";
import type { Answer } from "./worker.ts";

/** The worker's program: loads one module and calls its functions at the parent's request. */
type Call = { readonly id: number; readonly name: string; readonly given: readonly unknown[] };

const module: Record<string, (...given: readonly unknown[]) => unknown> = await import(process.argv[2] ?? "");

const answer = (message: Answer) => process.send?.(message);

process.on("message", ({ id, name, given }: Call) => {
  run(name, given).then(
    (result) => answer({ id, result }),
    (error: unknown) => answer({ id, error: error instanceof Error ? error.message : String(error) }),
  );
});
process.on("disconnect", () => process.exit());
answer({ ready: true });
// Node would store its compile cache only at exit, which a worker that is killed never reaches.
flushCompileCache();

async function run(name: string, given: readonly unknown[]): Promise<unknown> {
  const called = module[name];
  if (called === undefined) throw new Error(`there is no ${name}`);
  return await called(...given);
}
