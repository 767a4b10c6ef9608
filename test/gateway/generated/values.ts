import type { Seeded } from "@tapedeck/shared/testing/seeded";

export function oneOf<T>(random: Seeded, items: readonly T[]): T {
  return items[random.below(items.length)] as T;
}

/** Texts that programs stumble over, whatever they are meant to be. */
const odd: readonly string[] = [
  ...[
    "",
    " ",
    "\0",
    "\n",
    "%",
    "*",
    "*.*",
    "/",
    "//",
    "a/b",
    "a/b/c/d",
    "a/b/c/d/e",
    "..",
    "\u{1F4A9}",
    "李",
    "é",
    "e\u0301",
  ],
  ...["__proto__", "constructor", "toString", "hasOwnProperty", "null", "undefined", "true", "[]", "{}"],
  ...["__proto__=x", "constructor=", "=", "=x", "a=b=c", "label.__proto__", "label.", "label.branch", "hour,day,hour"],
  ...["' or 1=1 --", '"', "\\", "$1", "?", "{", "%s", "\u202e", "\u001b[31m"],
  ...["x".repeat(3_000), "李".repeat(900), "x,".repeat(200)],
];

const numbers: readonly string[] = [
  ...["0", "-0", "1", "-1", "1000", "1001", "1.5", "1e3", "0x10", "NaN", "Infinity", "-Infinity", "00", "+1", "1_000"],
  ...["2147483647", "2147483648", "4294967295", "4294967296", "9007199254740991", "9007199254740993"],
  ...["9223372036854775807", "9223372036854775808", "99999999999999999999999999"],
];

const times: readonly string[] = [
  ...["2026-01-31T12:00:00Z", "2026-02-30T00:00:00Z", "2026-02-29T23:59:60Z", "2026-01-01T24:00:00Z", "2026-01-01"],
  ...["9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59.999999999Z", "9999-12-15T00:00:00Z", "10000-01-01T00:00:00Z"],
  ...["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "0000-01-01T00:00:00Z", "-000001-01-01T00:00:00Z"],
  ...[
    "1969-12-31T23:59:59.999Z",
    "1970-01-01T00:00:00Z",
    "2262-04-12T00:00:00Z",
    "+275760-09-13T00:00:00Z",
    "now",
    "start",
  ],
];

const zones: readonly string[] = [
  ...[
    "Asia/Kolkata",
    "Asia/Calcutta",
    "US/Pacific",
    "Europe/Kyiv",
    "Europe/Kiev",
    "GMT+5",
    "+05:30",
    "EST5EDT",
    "FOO5",
  ],
  ...["utc", "europe/berlin", "Europe/Nowhere", "posix/UTC", "localtime", "Factory", "Etc/GMT+14", "../UTC"],
];

const page = (text: string) => Buffer.from(text).toString("base64url");
const pages: readonly string[] = [
  ...["older than 0", "older than 1", "older than 9999999999999999", "older than -1", "newer than 3", ""].map(page),
];

/** Positions of this log, of none, and what only looks like one. */
export function positionsIn(epoch: string): readonly string[] {
  const sequences = [
    "0",
    "1",
    "100",
    "10000",
    "1zz",
    "3zzzz00",
    "9zzzzzzzzz00",
    "azzzzzzzzzz00",
    "b7fffffffffff00",
    "zzzzzz",
    "",
  ];
  return [...sequences.map((sequence) => `${sequence}-${epoch}`), `1100-zzzzzz`, `gcj869-3009`, `-${epoch}`, epoch];
}

/** Makes texts: hostile ones, and ones that are near to what a parameter takes. */
export function hostileTexts(random: Seeded, positions: readonly string[]): () => string {
  const all = [odd, numbers, times, zones, pages, positions];
  return () => oneOf(random, oneOf(random, all));
}
