import { upstreamNames } from "@tapedeck/shared/upstreams";
import { z } from "zod";

// Fields that several answers of the HTTP API have.

export const text = (description: string, ...examples: string[]) =>
  z.string().meta({ description, ...(examples.length > 0 && { examples }) });

export const time = (description: string) =>
  z.string().meta({ description, format: "date-time", examples: ["2026-11-20T20:41:10.616063658Z"] });

export const count = (description: string) => z.int().nonnegative().meta({ description });

export const position = z.string().meta({
  description:
    "The position of an event in the log. Opaque; positions sort as text as the log does; the same on every transport; valid in its workspace.",
  pattern: "^[1-9][0-9a-z]{3,11}-[a-z0-9]{1,16}$",
  examples: ["383600-t3k9x2"],
});

export const sourceName = text("In full: `workspace/developer/project/upstream`.", "acme/alice/shop/skaffold");
export const sessionId = text("One lifetime of the upstream: a ULID.", "01M7XB1CJJ74KGYJT57DM4N80H");
export const upstream = z.enum(upstreamNames).describe("The kind of tool.");

/** The non-empty names of an enum. */
export const named = (names: Readonly<Record<number, string>>) =>
  z.enum(Object.values(names).filter((name) => name !== ""));

export const heardAt = z.record(z.string(), z.string().meta({ format: "date-time" })).meta({
  description:
    "When each collection of a polled source was last seen, by its tap's clock. Empty: the source is not polled, a past time was requested, or it is not known.",
  examples: [{ pods: "2026-11-20T20:41:10.616Z", images: "2026-11-20T20:41:09.402Z" }],
});
