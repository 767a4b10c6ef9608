import { expect, it } from "vitest";
import { seeded } from "../testing/seeded.ts";
import { endOf, indexesPerMessage, largestSequence, logStart, offsetOf } from "./offset.ts";
import { belongsToLog, formatPosition, type Position, parsePosition, positionBefore } from "./position.ts";

const epoch = "t3k9x2";

it.each([
  [offsetOf(10_482), "383600-t3k9x2"],
  [offsetOf(10_482, 36), "383610-t3k9x2"],
  [endOf(10_482), "3836sf-t3k9x2"],
  [offsetOf(1), "1100-t3k9x2"],
  [logStart, "1000-t3k9x2"],
])("offset %i is %s", (offset, text) => {
  expect(formatPosition({ epoch, offset })).toBe(text);
  expect(parsePosition(text)).toEqual({ epoch, offset });
});

it("texts sort as the log does, also across restores, and come back as the same position", () => {
  const random = seeded("positions");
  // A log that was restored again and again: each epoch goes on after a backup of the one before.
  const epochs: { readonly epoch: string; readonly first: number }[] = [];
  for (let first = 1; first < largestSequence; first = first * (2 + random.below(60)) + random.below(100)) {
    epochs.push({ epoch: random.below(36 ** 6).toString(36), first });
  }
  const anyPosition = (): Position => {
    const which = random.below(epochs.length);
    const first = epochs[which]?.first ?? 1;
    const end = epochs[which + 1]?.first ?? largestSequence + 1;
    // Near the edges of an epoch and of the number of digits, and anywhere.
    const inside = [0, random.below(3), random.below(40), Math.floor((end - first) * (random.below(1_000) / 1_000))];
    const sequence = Math.min(end - 1, first + (inside[random.below(inside.length)] ?? 0));
    return { epoch: epochs[which]?.epoch ?? "", offset: offsetOf(sequence, random.below(indexesPerMessage)) };
  };
  const order = (a: number | string, b: number | string) => (a < b ? -1 : a > b ? 1 : 0);
  for (let round = 0; round < 50_000; round++) {
    const [one, other] = [anyPosition(), anyPosition()];
    const [text, otherText] = [formatPosition(one), formatPosition(other)];
    expect(parsePosition(text)).toEqual(one);
    expect(encodeURIComponent(text)).toBe(text);
    expect(text.length).toBeLessThanOrEqual(12 + 1 + one.epoch.length);
    const bytes = Buffer.compare(Buffer.from(text), Buffer.from(otherText));
    if (bytes !== order(one.offset, other.offset)) expect({ one, other, text, otherText }).toBe("in order");
  }
});

it("no other text is a position: what parses is written the same", () => {
  const random = seeded("texts");
  const letters = "0123456789abcsfzAZ-_ .+%é";
  const base = formatPosition({ epoch, offset: offsetOf(10_482, 7) });
  let parsed = 0;
  for (let round = 0; round < 50_000; round++) {
    const text = [...base];
    for (let edits = 1 + random.below(3); edits > 0; edits--) {
      const letter = letters[random.below(letters.length)] ?? "";
      text.splice(random.below(text.length + 1), random.below(2), ...(random.below(3) > 0 ? [letter] : []));
    }
    const position = parsePosition(text.join(""));
    if (position === undefined) continue;
    parsed++;
    expect(formatPosition(position)).toBe(text.join(""));
  }
  expect(parsed).toBeGreaterThan(100);
});

it.each([
  "",
  "t3k9x2",
  "t3k9x2-10482",
  "383600",
  "383600-",
  "383600-T3K9X2",
  "283600-t3k9x2", // another number of digits
  "483600-t3k9x2",
  "308600-t3k9x2", // a leading zero
  "3836sg-t3k9x2", // an index that no message has
  "9zzzzzzzzz00-t3k9x2", // beyond all
  " 383600-t3k9x2",
  "383600-t3k9x2\n",
  "383600-t3k9x2t3k9x2t3k9x2",
])("%j is no position", (text) => {
  expect(parsePosition(text)).toBeUndefined();
});

it("reading begins with a position when it begins after the one before", () => {
  expect(positionBefore("383600-t3k9x2")).toBe(formatPosition({ epoch, offset: endOf(10_481) }));
  expect(positionBefore("383601-t3k9x2")).toBe("383600-t3k9x2");
  expect(positionBefore("t3k9x2-10482")).toBeUndefined();
});

it("positions of former epochs belong to the log up to the end of its backup", () => {
  const log = { epoch, formerEpochs: [{ epoch: "first1", lastSeq: 300 }] };
  const belongs = (of: string, offset: Position["offset"]) => belongsToLog(log, { epoch: of, offset });
  expect([belongs("first1", endOf(300)), belongs("first1", offsetOf(301))]).toEqual([true, false]);
  expect([belongs(epoch, offsetOf(301)), belongs("other1", offsetOf(1))]).toEqual([true, false]);
});
