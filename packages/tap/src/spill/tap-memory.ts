import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Remembered, TapMemory } from "../tap.ts";

const rememberedSchema = z.object({
  address: z.string(),
  connection: z.string(),
  broken: z
    .object({
      channels: z.array(z.string()),
      heard: z.object({ channel: z.string(), at: z.number() }).optional(),
    })
    .optional(),
});

/**
 * What a source's tap remembers, in a file beside its id. It stays there when the tap ends, however that happens: the
 * process that it is about may outlive many taps. `onProblem` is told why it could not be kept.
 */
export function fileMemory(folder: string, source: string, onProblem: (cause: unknown) => void): TapMemory {
  const path = join(folder, `${source.replaceAll("/", ".")}.upstream.json`);
  return {
    load: () => {
      try {
        return rememberedSchema.parse(JSON.parse(readFileSync(path, "utf8")));
      } catch {
        // There is none, or none that could be understood.
        return undefined;
      }
    },
    save: (remembered: Remembered) => {
      const half = `${path}.${process.pid}.new`;
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        writeFileSync(half, `${JSON.stringify(remembered)}\n`, { mode: 0o600 });
        renameSync(half, path);
      } catch (cause) {
        onProblem(cause);
      }
    },
  };
}
