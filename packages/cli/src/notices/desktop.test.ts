import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "@tapedeck/shared/testing/until";
import { afterEach, expect, it, vi } from "vitest";
import { installNoticeProgram } from "../testing/notice-program.ts";
import { Desktop } from "./desktop.ts";

const folder = mkdtempSync(join(tmpdir(), "desktop-"));
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

/** Reports nothing. */
const unexpected = (line: string) => expect.fail(line);

const hostile = {
  title: "--help $(touch pwned) `id`\u001b]0;title\u0007",
  text: 'a\\n "quoted" <a href="x">&</a>\u0000\u001b[31mred\nsecond; rm -rf ~ \ud800',
};

it("notify-send gets the texts of upstreams as its arguments, with nothing that it or the desktop would obey", async () => {
  const { shown } = installNoticeProgram(folder, "notify-send");
  vi.stubEnv("PATH", `${folder}:${process.env.PATH}`);
  new Desktop(unexpected).show(hostile);
  await until(() => shown().length > 0, { message: "the notice" });
  expect(shown()).toEqual([
    [
      "--app-name=Tapedeck",
      "--",
      "--help $(touch pwned) `id`",
      'a\\\\n "quoted" &lt;a href="x"&gt;&amp;&lt;/a&gt;red\nsecond; rm -rf ~ \ufffd',
    ],
  ]);
});

it("osascript gets the texts of upstreams as the arguments of a fixed script", async () => {
  const { shown } = installNoticeProgram(folder, "osascript");
  vi.stubEnv("PATH", `${folder}:${process.env.PATH}`);
  new Desktop(unexpected).show({ ...hostile, title: `alice/shop" & (do shell script "id") & "` });
  await until(() => shown().length > 0, { message: "the notice" });
  const [args = []] = shown();
  expect(args.slice(0, 6)).toEqual([
    ...["-e", "on run argv"],
    ...["-e", "display notification (item 2 of argv) with title (item 1 of argv)"],
    ...["-e", "end run"],
  ]);
  expect(args.slice(6)).toEqual([
    `alice/shop" & (do shell script "id") & "`,
    'a\\n "quoted" <a href="x">&</a>red\nsecond; rm -rf ~ \ufffd',
  ]);
});

it("a notifier gets no token of Tapedeck, and no more text than a notice holds", async () => {
  const { shown } = installNoticeProgram(folder, "notify-send");
  vi.stubEnv("PATH", `${folder}:${process.env.PATH}`);
  vi.stubEnv("TAPEDECK_TOKEN", "tdk_secret");
  new Desktop(unexpected).show({ title: "t".repeat(1_000), text: "😀".repeat(10_000) });
  await until(() => shown().length > 0, { message: "the notice" });
  const [, , title = "", text = ""] = shown()[0] ?? [];
  expect([title.length, [...text].length, text.endsWith("😀…")]).toEqual([120, 600, true]);
});

it("without a program that shows notices this is reported at once, and nothing else happens", () => {
  vi.stubEnv("PATH", folder);
  const lines: string[] = [];
  const desktop = new Desktop((line) => lines.push(line));
  for (let notice = 0; notice < 2; notice++) desktop.show(hostile);
  expect(lines).toEqual(["notices can't be shown: neither osascript nor notify-send is on the PATH"]);
});

it("a notifier that fails is reported once", async () => {
  const { shown } = installNoticeProgram(folder, "notify-send", { exitCode: 1 });
  vi.stubEnv("PATH", `${folder}:${process.env.PATH}`);
  const lines: string[] = [];
  const desktop = new Desktop((line) => lines.push(line));
  desktop.show(hostile);
  await until(() => lines.length > 0, { message: "the report" });
  desktop.show(hostile);
  await until(() => shown().length === 2, { message: "the second notice" });
  expect(lines).toEqual(["notices can't be shown: notify-send ended with 1"]);
});

it("a notifier that the system refuses to start disturbs nothing", () => {
  installNoticeProgram(folder, "notify-send");
  vi.stubEnv("PATH", `${folder}:${process.env.PATH}`);
  // More than Linux takes in one variable.
  vi.stubEnv("TAPEDECK_LARGE", "x".repeat(200_000));
  const lines: string[] = [];
  expect(() => new Desktop((line) => lines.push(line)).show(hostile)).not.toThrow();
  expect(lines).toEqual(["notices can't be shown: notify-send can't be started"]);
});
