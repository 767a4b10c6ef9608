import { describe, expect, it } from "vitest";
import { seeded } from "../testing/seeded.ts";
import {
  beyondAll,
  endOf,
  firstMessageAfter,
  indexesPerMessage,
  indexOf,
  justBefore,
  largestSequence,
  logStart,
  maxEventsBetween,
  mayHoldEvents,
  messagesBefore,
  messagesBetween,
  type Offset,
  offsetOf,
  type Sequence,
  sequenceOf,
} from "./offset.ts";

it("an offset is made of a sequence and an index, up to the largest ones", () => {
  const random = seeded("offsets");
  const sequences = [1, 2, largestSequence, ...Array.from({ length: 1_000 }, () => 1 + random.below(2 ** 31))];
  for (const sequence of sequences) {
    for (const index of [0, 1, random.below(indexesPerMessage), indexesPerMessage - 1]) {
      const offset = offsetOf(sequence, index);
      expect([sequenceOf(offset), indexOf(offset)]).toEqual([sequence, index]);
      expect(Number.isSafeInteger(offset)).toBe(true);
      expect(offset > logStart && offset <= endOf(sequence) && offset <= beyondAll).toBe(true);
    }
    expect(endOf(sequence)).toBe(justBefore(offsetOf(sequence + 1)));
  }
  expect(endOf(largestSequence)).toBe(beyondAll);
});

it("before the first message is the log's start", () => {
  expect([endOf(0), justBefore(offsetOf(1)), messagesBefore(offsetOf(3), 3), justBefore(logStart)]).toEqual([
    logStart,
    logStart,
    logStart,
    logStart,
  ]);
});

it("messages are counted, whatever the index", () => {
  expect(messagesBefore(offsetOf(9, 5), 2)).toBe(endOf(7));
  expect(messagesBetween(endOf(7), offsetOf(9))).toBe(2);
  expect(justBefore(offsetOf(9, 5))).toBe(offsetOf(9, 4));
});

it("the rest of a message is still to be read after one of its events", () => {
  expect([logStart, offsetOf(7), offsetOf(7, 5), endOf(7)].map(firstMessageAfter)).toEqual([1, 7, 7, 8]);
  expect(mayHoldEvents(offsetOf(7), endOf(7))).toBe(true);
  expect(mayHoldEvents(offsetOf(7), offsetOf(7, 1))).toBe(true);
  expect(mayHoldEvents(offsetOf(7, 1), offsetOf(7, 1))).toBe(false);
  expect(mayHoldEvents(endOf(7), offsetOf(8))).toBe(true);
  expect(mayHoldEvents(endOf(8), offsetOf(8))).toBe(false);
  expect(mayHoldEvents(logStart, offsetOf(1))).toBe(true);
});

it("events between two offsets are at most as many as their messages take", () => {
  expect(maxEventsBetween(offsetOf(7, 2), offsetOf(7, 5))).toBe(3);
  expect(maxEventsBetween(endOf(7), endOf(9))).toBe(2 * indexesPerMessage);
  expect(maxEventsBetween(endOf(9), endOf(7))).toBe(0);
});

describe("the compiler", () => {
  it("distinguishes offsets, sequences and numbers", () => {
    const takesOffset = (offset: Offset) => offset;
    const takesSequence = (sequence: Sequence) => sequence;
    takesSequence(sequenceOf(offsetOf(3)));
    // @ts-expect-error a sequence is not an offset
    takesOffset(sequenceOf(offsetOf(3)));
    // @ts-expect-error nor is what arithmetic makes of one
    takesOffset(offsetOf(3) - 1);
    // @ts-expect-error and an offset is not a sequence
    takesSequence(offsetOf(3));
  });
});
