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
 * A source's tap memory, in a file beside its tap id. The file stays when the tap ends in any way, because the upstream's
 * process may outlive many taps. `onError` gets the reason when the memory could not be saved.
 */
export function fileMemory(folder: string, source: string, onError: (cause: unknown) => void): TapMemory {
  const path = join(folder, `${source.replaceAll("/", ".")}.upstream.json`);
  return {
    load: () => {
      try {
        return rememberedSchema.parse(JSON.parse(readFileSync(path, "utf8")));
      } catch {
        // The file is missing or can't be read.
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
        onError(cause);
      }
    },
  };
}
