import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { causeGroup, explain } from "./explain.ts";

it.each([
  ["nothing", ""],
  ["words of failure in names", "src/error.c\nlib/failed/\ncompiling fatal_error.ts\n0 errors, 0 failed\n"],
  ["warnings", "src/a.c:3:4: warning: unused variable 'error'\nnpm warn deprecated request@2.88.2\n"],
  [
    "tries that succeed later",
    "curl: (7) Failed to connect to mirror port 443\nretrying in 2 s\nunpacked\nready\nserving\ndone\n",
  ],
])("says nothing about %s", (_, output) => {
  expect(explain({ output })).toBeUndefined();
});

it("believes a summary that reports success", () => {
  expect(explain({ output: "error: expected\n", summary: "exit status 0" })).toBeUndefined();
});

it("quotes the summary of a step that printed nothing", () => {
  expect(explain({ output: "", summary: 'container not found ("web")', step: "sync" })).toMatchObject({
    cause: 'container not found ("web")',
    reason: "not found",
  });
});

it("knows no more than the exit code of a command that printed nothing, and what a shell means by it", () => {
  const reasonOf = (output: string, summary: string, step: string) => explain({ output, summary, step })?.reason;
  expect(reasonOf("Building [web]...\n", "building custom artifact: exit status 1", "build")).toBe("exit code only");
  expect(reasonOf("", "exited with 7", "app")).toBe("exit code only");
  expect(reasonOf("", "exited with 137", "app")).toBe("out of memory");
  expect(reasonOf("something else\n", "building custom artifact: exit status 1", "build")).toBe("other");
});

it("quotes no line in which Skaffold only says what it uses", () => {
  const output = "Found [docker-desktop] context, using local docker daemon.\nTarget platforms: [linux/amd64]\n";
  const summary = "building custom artifact: exit status 2";
  expect(explain({ output, summary, step: "build" })?.cause).toBe(summary);
});

it("distinguishes a build that was stopped from one that ran out of memory", () => {
  const killed = "building custom artifact: signal: killed";
  const stopped = `Building [web]...\n\u001b[33mBuild [web] was canceled\n\u001b[0m${killed}\n`;
  expect(explain({ output: stopped, summary: killed, step: "build" })?.reason).toBe("cancelled");
  expect(explain({ output: `Building [web]...\n${killed}\n`, summary: killed, step: "build" })?.reason).toBe(
    "out of memory",
  );
});

it("unescapes quoted output in a summary", () => {
  const summary =
    'running [kubectl rollout]\n - stdout: ""\n - stderr: "error: deployment \\"api\\" exceeded its progress deadline\\n"';
  expect(explain({ output: "", summary })).toMatchObject({
    cause: 'error: deployment "api" exceeded its progress deadline',
    reason: "timeout",
  });
});

it.each([
  'Error from server (BadRequest): error when creating "k8s/web.yaml": strict decoding error: unknown field "spec.replica"',
  'The Deployment "web" is invalid: spec.selector: Invalid value: {}: field is immutable',
  'error: resource mapping not found: no matches for kind "Widget" in version "v1"',
])("knows a manifest that the cluster refuses: %s", (output) => {
  expect(explain({ output })?.reason).toBe("the cluster refuses the manifest");
});

it("takes the number of a line for no status of HTTP", () => {
  expect(explain({ output: "error: assertion at lib/a.c:403\n" })?.reason).not.toBe("permission");
});

it.each([
  [
    "that a caret marks above it",
    "/a/zones.js:5\n  npt: 1\n  ^^^\n\nSyntaxError: bad\n    at f (/a/main.js:2:1)\n",
    "/a/zones.js",
    5,
  ],
  ["whose file a script named before", "applying a.sql\nParse error near line 3: no such column: b\n", "a.sql", 3],
])("finds a place %s", (_, output, file, line) => {
  expect(explain({ output })).toMatchObject({ file, line });
});

it("gives the tool's advice unless it fits every failure", () => {
  const error = "error[E0425]: cannot find value `totl` in this scope\n --> src/main.rs:4:13\n";
  expect(explain({ output: `${error}help: a local variable with a similar name exists: \`total\`\n` })?.advice).toBe(
    "a local variable with a similar name exists: `total`",
  );
  expect(explain({ output: `${error}help: for more information, open an issue\n` })?.advice).toBeNull();
});

it("groups causes that differ in numbers, ids, paths and hashes alone", () => {
  const groups = [
    "src/a/cart.ts(3,10): error TS2305: no exported member 'Cart'",
    "#11 4.870 lib/cart.ts(41,7): error TS2305: no exported member 'Cart'",
  ].map((cause) => causeGroup("type error", cause));
  expect(new Set(groups)).toEqual(new Set(["type error: <path>: error TS#: no exported member 'Cart'"]));
  const pods = ["api-6d8f7bcf5-m2xqn", "api-58c5697876-gx972"].map((pod) =>
    causeGroup(
      "timeout",
      `pod ${pod} of 3f2504e0-4f89-11d3-9a0c-0305e82c3301: dial 10.0.0.1:80 sha256:1c168adb00d208e42f93`,
    ),
  );
  expect(new Set(pods).size).toBe(1);
  expect(causeGroup("timeout", "a")).not.toBe(causeGroup("network", "a"));
});

const size = 128 * 1_024;
const fill = (text: string) => text.repeat(Math.ceil(size / text.length)).slice(0, size);

const hostile: Readonly<Record<string, string>> = {
  "one line of digits": fill("1234567890"),
  "one line of letters": fill("error"),
  "one line of slashes": fill("a/"),
  "one line of colons": fill("a:1:"),
  "one line of spaces": fill(" "),
  "one line of brackets": fill("[(["),
  "lines of digits": fill(`${"1".repeat(498)}\n`),
  "lines of letters": fill(`error ${"x".repeat(490)}\n`),
  "lines of paths": fill(`${"a/b.c:".repeat(80)}\n`),
  "lines of words": fill(`${"not found ".repeat(50)}\n`),
  "lines of escapes": fill(`${String.fromCharCode(27)}[`),
  "lines of quotes": fill(`${'stderr: "\\"'.repeat(40)}\n`),
  "nested frames": fill(`${"[a] ".repeat(120)}\n`),
  "short lines": fill("error: a\n"),
  "rows of a list": fill("- cannot a\n"),
  "verdicts of tests": fill("FAIL a\n"),
  "empty lines": fill("\n"),
  "frames of a stack": fill("    at f (/a.js:1:1)\n"),
  "test logs": fill("    a_test.go:1: b\n"),
};

/** Processor time in microseconds, the least of several: others' work and pauses do not count. */
function cost(output: string): number {
  const times = Array.from({ length: 3 }, () => {
    const start = process.cpuUsage();
    explain({ output, summary: "exit status 1" });
    const { user, system } = process.cpuUsage(start);
    return user + system;
  });
  return Math.min(...times);
}

it("takes for hostile outputs a small multiple of what ordinary ones take", () => {
  const folder = join(import.meta.dirname, "../cases");
  const ordinary = readdirSync(folder).map((name) => readFileSync(join(folder, name, "output.txt"), "utf8"));
  const usual = cost(fill(ordinary.join("\n")));
  const ratios = Object.entries(hostile).map(([name, output]) => ({ name, ratio: cost(output) / usual }));
  console.info(`ordinary: ${usual} µs; ${ratios.map(({ name, ratio }) => `${name}: ${ratio.toFixed(2)}`).join("; ")}`);
  expect(ratios.filter(({ ratio }) => ratio > 10)).toEqual([]);
});

it("reads so much of an output at most", () => {
  const line = "ordinary line without any meaning\n";
  const long = `first\n${line.repeat(100_000)}src/a.c:3:4: error: expected ';'\n`;
  expect(explain({ output: long })).toMatchObject({ file: "src/a.c", line: 3 });
  expect(cost(line.repeat(200_000))).toBeLessThan(4 * cost(line.repeat(20_000)) + 20_000);
});

it("quotes the summary where only an announcement of the command was printed", () => {
  const summary = "command make check finished with non-0 exit code.";
  expect(explain({ output: 'Running custom test command: "make check"\n', summary, step: "test" })).toMatchObject({
    cause: summary,
    reason: "test failed",
  });
});

it.each([
  ["MalformedYAMLError: yaml: line 1: did not find expected ',' or ']'", "configuration"],
  ["error: worker does not compile", "compile error"],
])("gives the class of %s", (output, reason) => {
  expect(explain({ output, summary: "exit status 3" })?.reason).toBe(reason);
});
