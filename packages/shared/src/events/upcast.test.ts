import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Resources } from "@tapedeck/proto/tapedeck/v1/observation";
import { expect, test } from "vitest";
import { parseFilter } from "../filter/filter.ts";
import { toSubjects } from "../filter/subjects.ts";
import { recordedSubjects } from "../log/subjects.ts";
import { parseSourceName, type SourceName } from "../source.ts";
import { decodeEvent, encodeEvent } from "./codec.ts";
import { kinds } from "./kinds.ts";
import { recordedNouns } from "./upcast.ts";

/** An event that an earlier version recorded: `host.described` with a tapedeck.v1.Things of one target. */
const sample = Buffer.from(
  "CgpTLnRoaW5ncy4xEhdhY21lL2FsaWNlL3Nob3AvdmFncmFudBoBUyIGdGhpbmdzKAEwAUIOaG9zdC5kZXNjcmliZWRiF3RoZSBzZXJ2ZXIgaGFz" +
    "IDEgdGFyZ2V04gIEEAEYAaIGLQoSdGFwZWRlY2sudjEuVGhpbmdzEhUKEwoGdGFyZ2V0GgkKAnQxEgN3ZWIYFQ==",
  "base64",
);

test("an inventory that was recorded under the former kind is read in the current form", () => {
  const event = decodeEvent(sample);
  expect(event).toMatchObject({
    id: "S.things.1",
    source: "acme/alice/shop/vagrant",
    channel: "things",
    ordinal: 1n,
    kind: "inventory.described",
    summary: "the server has 1 target",
    detail: { $case: "host", value: { part: 0, parts: 1, entries: 1 } },
    original: { type: "tapedeck.v1.Resources", size: 21n },
  });
  const { kinds: listed } = Resources.decode(event.original?.bytes ?? Buffer.alloc(0));
  expect(listed).toMatchObject([{ kind: "target", entries: [{ id: "t1", bytes: Buffer.from("web") }] }]);
});

test("an event in the current form is read as it was written", () => {
  const current = decodeEvent(sample);
  expect(decodeEvent(encodeEvent(current))).toEqual(current);
  expect(Event.decode(encodeEvent(current)).kind).toBe("inventory.described");
});

test("a kind is searched for under its former noun, too", () => {
  const source = parseSourceName("acme/alice/shop/vagrant") as SourceName;
  const subject = "tapedeck.v2.acme.alice.shop.vagrant.things";
  expect(recordedSubjects(source, "things", "inventory.described")).toEqual([
    `${subject}.inventory`,
    `${subject}.host`,
  ]);
  expect(toSubjects(parseFilter({ kinds: ["*.described"] }), "acme")).toEqual(
    ["session", "inventory", "host"].map((noun) => `tapedeck.v2.acme.*.*.*.*.${noun}`),
  );
  expect(new Set(kinds.flatMap(recordedNouns)).has("host")).toBe(true);
  expect(recordedNouns("build.failed")).toEqual(["build"]);
});
