import { fileURLToPath } from "node:url";
import { loadRecording, recordingFolders } from "@tapedeck/fakes/skaffold/recording";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mapStringFields } from "../normalize/mask-strings.ts";
import { maskPiece } from "./continued-text.ts";
import { secretCases } from "./testing/corpus.ts";
import { may, mayHoldSecrets, triggersIn } from "./triggers.ts";

const root = fileURLToPath(new URL("../../../../packages/fakes/recordings/skaffold", import.meta.url));

function recordedTexts(): readonly string[] {
  const texts: string[] = [];
  for (const { messages } of recordingFolders(root).map(loadRecording)) {
    for (const channel of ["v1", "v2", "logs"] as const) {
      const type = messageType(channel === "v1" ? "proto.LogEntry" : "proto.v2.Event");
      for (const { bytes } of messages[channel]) mapStringFields(type, bytes, (text) => void texts.push(text));
    }
  }
  return texts;
}

describe("triggers", () => {
  it("leave nearly nothing of ordinary output to the rules, so that masking costs one pass over it", () => {
    const texts = recordedTexts();
    const observed = texts.filter((text) => triggersIn(text).rules !== 0);
    expect(texts.length).toBeGreaterThan(10_000);
    expect(observed.length / texts.length, [...new Set(observed)].slice(0, 40).join("\n")).toBeLessThan(0.1);
  });

  it("are found in the bytes of a message wherever a text in it has a secret", () => {
    const words = fc.constantFrom(
      "://",
      "pwd",
      "é",
      "😀",
      "ſecret",
      "K",
      " ",
      "=",
      ...[...secretCases].map(({ text }) => text),
    );
    fc.assert(
      fc.property(fc.array(words, { maxLength: 4 }), fc.nat(300), (parts, end) => {
        const text = parts.join("").replaceAll(/[«»]/g, "").slice(0, end).toWellFormed();
        if (maskPiece(text).text !== text) expect(mayHoldSecrets(Buffer.from(text)), text).toBe(true);
      }),
      { numRuns: 5_000 },
    );
  });

  it("say where a token may begin, also at the very start", () => {
    expect(triggersIn("ghp_a and npm_b")).toEqual({ rules: may.token, places: [0, 10] });
    expect(triggersIn("no secret").rules & may.token).toBe(0);
    expect(triggersIn("")).toEqual({ rules: 0, places: [] });
  });
});
