import { fileURLToPath } from "node:url";
import { loadRecording, recordingFolders } from "@tapedeck/fakes/skaffold/recording";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { fromGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { describe, expect, it } from "vitest";
import { maskPiece } from "../../secrets/continued-text.ts";
import { maskText } from "../../secrets/mask-text.ts";
import { secretCases } from "../../secrets/testing/corpus.ts";
import { mask } from "./mask.ts";
import { normalizer } from "./normalizer.ts";

const root = fileURLToPath(new URL("../../../../../packages/fakes/recordings/skaffold", import.meta.url));
const v2 = (json: object) => fromGatewayJson(messageType("proto.v2.Event"), json as never);
const v1 = (json: object) => fromGatewayJson(messageType("proto.LogEntry"), json as never);

describe("mask", () => {
  it("finds nothing secret in any recording", () => {
    for (const { messages, name } of recordingFolders(root).map(loadRecording)) {
      for (const channel of ["v1", "v2", "logs"] as const) {
        for (const { bytes } of messages[channel]) {
          const masked = mask(channel, bytes);
          expect(masked.redacted, name).toBe(0);
          expect(masked.bytes).toBe(bytes);
        }
      }
    }
  });

  it("masks the environment that `-v debug` prints", () => {
    const [secret, stars] = ["hunter 2", "********"];
    const line = (value: string) =>
      `Executing template &{envTemplate 0xc000dc77a0  } with environment map[DB_PASSWORD:${value} HOME:/srv/home]\n`;
    const bytes = v2({ skaffoldLogEvent: { level: "DEBUG", message: line(secret) } });
    const masked = mask("v2", bytes);
    expect(masked.redacted).toBe(1);
    expect(masked.bytes.length).toBe(bytes.length);
    expect(Event.decode(masked.bytes)).toEqual(
      Event.decode(v2({ skaffoldLogEvent: { level: "DEBUG", message: line(stars) } })),
    );
  });

  it("leaves nothing of a secret in the facts, wherever the event had it", () => {
    const err = "step failed: NPM_TOKEN=hunter2 not accepted";
    const actionableErr = { errCode: "BUILD_UNKNOWN", message: err, suggestions: [{ action: `try ${err}` }] };
    const bytes = v1({ event: { buildEvent: { artifact: "web", status: "Failed", err, actionableErr } }, entry: err });
    const masked = mask("v1", bytes);
    expect(masked.redacted).toBe(4);
    expect(LogEntry.decode(masked.bytes).entry).toBe(err.replace("hunter2", "*******"));
    const facts = normalizer.channels[0]?.reader().read(masked.bytes) ?? expect.fail();
    const text = JSON.stringify(facts);
    expect(text).not.toContain("hunter2");
    expect(facts[0].summary).toBe("build of web failed: step failed: NPM_TOKEN=******* not accepted");
  });

  it("checks whole frames first, and misses nothing by that", () => {
    for (const text of secretCases.map(({ text }) => text.replaceAll(/[«»]/g, ""))) {
      // Where a piece of output ends, the beginning of a secret is masked.
      for (const end of [text.length, Math.ceil(text.length / 2), Math.ceil(text.length / 3)]) {
        const piece = text.slice(0, end).toWellFormed();
        const masked = mask("v2", v2({ skaffoldLogEvent: { message: piece, task_id: "Deploy-1" } }));
        const printed = maskPiece(piece).text;
        expect(masked.piece).toEqual({ stream: "skaffoldLogEvent.task_id=Deploy-1;", text: printed });
        expect(Event.decode(masked.bytes).event_type).toMatchObject({ value: { message: printed } });
        const entry = LogEntry.decode(mask("v1", v1({ entry: piece })).bytes);
        expect(entry.entry).toBe(maskText(piece).text);
      }
    }
  });

  it("masks bytes that are no message, too", () => {
    const bytes = Buffer.from("\u00ff\u00ff TOKEN=hunter2 \u00ff", "latin1");
    expect(mask("v1", bytes)).toEqual({
      bytes: Uint8Array.from(Buffer.from("\u00ff\u00ff TOKEN=******* \u00ff", "latin1")),
      redacted: 1,
    });
  });
});
