import { buffer } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import type { LogLevel } from "./command.ts";
import { logFilter } from "./log.ts";

const at = "2023-06-20T10:11:12.345+0200";
const text = [
  `${at} [INFO]  vagrant: starting built-in server for local operations: addr=127.0.0.1:40123\n`,
  "Bringing machine 'web' up ...\n",
  `${at} [WARN]  vagrant: no plugins\n`,
  `${at} [DEBUG] vagrant.runner: many things:\n`,
  "  things=\n",
  "  | one\n",
  "  | two\n",
  "   count=2\n",
  "    web: indented\n",
  `${at} [ERROR] vagrant: it went wrong: error="a b"\r\n`,
  "\xff\xfe no text\n",
  "2023 was a good year\n",
  `${at} [INFO]  vagrant: the end:\n`,
  "  text=\n",
  "  | lines\n",
  "  ",
];
const ours = (...lines: number[]) => lines.map((index) => text[index]).join("");
const all = Buffer.from(text.join(""), "latin1");

async function filter(shown: LogLevel | undefined, chunks: readonly Buffer[]) {
  const addresses: string[] = [];
  const through = logFilter({ level: shown, onAddress: (address) => addresses.push(address) });
  for (const chunk of chunks) through.write(chunk);
  through.end();
  return { addresses, out: (await buffer(through)).toString("latin1") };
}

const bytewise = [...all].map((byte) => Buffer.from([byte]));
const output = [1, 8, 10, 11];

describe("Vagrant's log", () => {
  it.each([
    [undefined, ours(...output)],
    ["off", ours(...output)],
    ["error", ours(1, 8, 9, 10, 11)],
    ["warn", ours(1, 2, 8, 9, 10, 11)],
    ["info", ours(0, 1, 2, 8, 9, 10, 11, 12, 13, 14, 15)],
    ["debug", all.toString("latin1")],
    ["trace", all.toString("latin1")],
  ] as const)(
    "of a user who asked for %s gives the address and leaves what that user would see",
    async (shown, left) => {
      for (const chunks of [[all], bytewise]) {
        expect(await filter(shown, chunks)).toEqual({ addresses: ["127.0.0.1:40123"], out: left });
      }
    },
  );

  it("lets what is no log through at once, whole line or not", async () => {
    const through = logFilter({ level: undefined, onAddress: () => {} });
    for (const part of ["Password: ", "...", "  web: y/n? ", "1"]) {
      through.write(part);
      expect(String(through.read() ?? "")).toBe(part === "1" ? "" : part);
    }
    through.end("2 machines");
    expect(String(through.read())).toBe("12 machines");
  });

  it.each([
    ["a line of the log", `${at} [DEBUG] vagrant: `],
    ["a text that begins as a line of the log", "2023-06-20T"],
  ])("may have %s that does not end for millions of bytes", async (_, start) => {
    const kilobyte = Buffer.alloc(1_024, "0");
    const chunks = [Buffer.from(start), ...Array<Buffer>(16_384).fill(kilobyte)];
    const { out } = await filter(undefined, chunks);
    expect(out.length).toBe(start.endsWith(" ") ? 0 : start.length + 16_384 * 1_024);
  });
});
