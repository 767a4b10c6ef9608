import { GetLogsResponse } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { SourceName } from "@tapedeck/shared/source";
import { describe, expect, it } from "vitest";
import { type FakeLog, fakeLog } from "../../../record/testing/fake-log.ts";
import { type PollingTap, pollingTap } from "../../../record/testing/polling-tap.ts";
import { mask } from "../mask.ts";
import { normalizer as rkt } from "../normalizer.ts";
import { MaskedLines, maskAfter } from "./masked-lines.ts";

const pod = "91d2f685-a122-492d-8bbe-c843c3cdb304";
const at = (seconds: number, message: string) => `2026-11-20 15:28:${seconds} +0000 UTC MESSAGE=${message}`;
const stars = (text: string) => "*".repeat(text.length);
const encoded = (...lines: readonly string[]) => Buffer.from(GetLogsResponse.encode({ lines: [...lines] }).finish());

/** The lines as they are recorded, one after the other. */
function masked(lines: readonly string[], { app = "web", masks = { mask, maskAfter } } = {}): readonly string[] {
  const masking = new MaskedLines(masks);
  return lines.map((line) => {
    const { text, bytes } = masking.mask({ pod, app }, encoded(line));
    masking.took({ pod, app }, text);
    expect(GetLogsResponse.decode(bytes).lines).toEqual([text]);
    return text;
  });
}

const [begin, one, two, end] = [
  "-----BEGIN RSA PRIVATE KEY-----",
  "MIIEowIBAAKC",
  "AQEAr7x==",
  "-----END RSA PRIVATE KEY-----",
];

describe("a secret of several lines", () => {
  it("is masked where each line has its own time", () => {
    const lines = [begin, one, two, end, "done"].map((text, index) => at(20 + index, text));
    const expected = [begin, stars(one), stars(two), end, "done"].map((text, index) => at(20 + index, text));
    expect(masked(lines)).toEqual(expected);
  });

  it("is masked where the lines are of one message, and in values of YAML", () => {
    expect(masked([at(20, begin), one, two, end, "done"])).toEqual([
      at(20, begin),
      stars(one),
      stars(two),
      end,
      "done",
    ]);
    expect(masked([at(20, "- name: DB_PASSWORD"), at(20, "  value: hunter2")])[1]).toBe(at(20, "  value: *******"));
  });

  it("is masked where lines of other apps stand between, in the stream of everything, for a while", () => {
    const lines = [begin, one, "GET / 200", two, "GET /b 200", end, "done"];
    expect(masked(lines, { app: "" })).toEqual([begin, stars(one), "GET / 200", stars(two), "GET /b 200", end, "done"]);
    const never = masked([begin, ...Array(250).fill("GET / 200"), "done"], { app: "" });
    expect(never.at(-1)).toBe("done");
  });

  it("is masked where the journal has divided a line", () => {
    for (const length of [2_048, 48 * 1024]) {
      const [first, second] = ["ghp_abcdefghij", "klmnopqrstuvwxyz0123456789 pushed"];
      const line = `${"x ".repeat(length)}`.slice(0, length - first.length) + first;
      const [given, next] = masked([at(20, line), at(20, second)]);
      expect(given?.slice(-14)).toBe("ghp_**********");
      expect(next).toBe(at(20, `${"*".repeat(26)} pushed`));
      // One that ends by itself leaves nothing open.
      expect(masked([at(20, line.slice(1)), at(20, second)])[1]).toBe(at(20, second));
    }
  });

  it("is not masked where nothing is to be", () => {
    const masks = { mask: (_: string, bytes: Uint8Array) => ({ bytes, redacted: 0 }), maskAfter: undefined };
    const masking = new MaskedLines(masks);
    const texts = [begin, one].map((line) => {
      const { text } = masking.mask({ pod, app: "web" }, encoded(line));
      masking.took({ pod, app: "web" }, text);
      return text;
    });
    expect(texts).toEqual([begin, one]);
  });
});

const source = "default/h1/host/rkt" as SourceName;
const well = () => ({ lands: "now", answers: true }) as const;

const texts = (log: FakeLog) =>
  log.recorded().flatMap(({ event: { detail } }) => (detail?.$case === "text" ? [detail.value.text] : []));

async function write(tap: PollingTap, ms: number, app: string, ...lines: readonly string[]) {
  for (const [index, line] of lines.entries())
    await tap.see(ms + index, "C1", "logs", {
      $case: "text",
      value: { pod, app, bytes: encoded(line), reopened: false },
    });
}

describe("a recorder", () => {
  it("masks the rest of a key, and each line once, when it was killed between its lines", async () => {
    const log = fakeLog(well);
    await using tap = pollingTap(log, { source, normalizer: rkt });
    await tap.dial(0, "C1", "/var/lib/rkt");
    const lines = [begin, one, two, end, "done"].map((text, index) => at(20 + index, text));
    await write(tap, 10, "web", ...lines.slice(0, 2));
    await tap.settled();
    await tap.crash(3);
    await write(tap, 20, "web", ...lines.slice(2));
    // The pod's stream repeats it, after a line of its own.
    await write(tap, 30, "", at(19, "Started web"), ...lines);
    await tap.settled();
    const recorded = [begin, stars(one), stars(two), end, "done"].map((text, index) => at(20 + index, text));
    expect(texts(log)).toEqual([...recorded, at(19, "Started web")]);
    const secret = log.stored.some(({ written }) =>
      [one, two].some((part) => Buffer.from(written.event).includes(part)),
    );
    expect(secret).toBe(false);
  });
});
