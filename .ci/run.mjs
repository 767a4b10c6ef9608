// Runs the README's test command on a checkout, with the long tests too (arguments are vitest's). Each file with a
// failure is run once more, alone: what passes there is flaky. The last line is "N passed, N failed"; a flaky test counts as passed and is listed before it.
// It exits with 0 only if nothing failed. A failure of the installation, of lint or types, and an uncaught error count as
// one failure. Searches begin with the same seed each time: what fails here fails because of the change.
//
// TAPEDECK_GREEN_COMMIT (optional) is a commit with which all this passed: tests of packages, images and charts are left
// out unless something that goes into these has changed since.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const packaging = ["infra/dist/**/*.long.test.ts", "infra/docker/**/*.long.test.ts", "infra/helm/**/*.long.test.ts"];
/** More files than these fail for one reason, which another run would only repeat. */
const maxFilesAgain = 10;
const reports = mkdtempSync(join(tmpdir(), "tapedeck-ci-"));
const bin = resolve("node_modules", ".bin");

const run = (command, args, env) =>
  new Promise((done) => {
    const child = spawn(command, args, { stdio: "inherit", env: { ...process.env, ...env } });
    child.once("error", () => done(127));
    child.once("close", (code) => done(code ?? 1));
  });

/** The tests of a vitest report, or undefined where vitest did not come to its end. */
const testsOf = (path) => {
  let results;
  try {
    results = JSON.parse(readFileSync(path, "utf8")).testResults;
  } catch {
    return undefined;
  }
  return results.flatMap(({ name, status, message, assertionResults }) => {
    const file = relative(process.cwd(), name);
    const isUnloaded = status === "failed" && assertionResults.length === 0;
    if (isUnloaded) return [{ file, title: "(not loaded)", status, text: message }];
    return assertionResults.map(({ fullName, status, failureMessages = [] }) => ({
      file,
      title: fullName,
      status,
      text: failureMessages.join("\n"),
    }));
  });
};

const isUnchanged = () => {
  const commit = process.env.TAPEDECK_GREEN_COMMIT ?? "";
  const paths = ["infra", "package-lock.json", ":(glob)**/package.json", ":(glob)**/exports/**"];
  return commit !== "" && spawnSync("git", ["diff", "--quiet", commit, "HEAD", "--", ...paths]).status === 0;
};

const print = (kind, { file, title, text }) => {
  const lines = text.split("\n").filter((line) => line.trim() !== "" && !line.includes("node_modules"));
  console.log(`${kind} ${file} > ${title}\n${lines.slice(0, 12).join("\n")}\n`);
};

const report = join(reports, "tests.json");
const code = await run(
  "npm",
  [
    ...["test", "--", "--project", "short", "--project", "long", ...process.argv.slice(2)],
    ...["--reporter=default", "--reporter=json", `--outputFile.json=${report}`],
  ],
  { TAPEDECK_TEST_UNCHANGED: isUnchanged() ? packaging.join(",") : "" },
);
const tests = testsOf(report) ?? [];
const failed = tests.filter(({ status }) => status === "failed");
const files = [...new Set(failed.map(({ file }) => file))];

const passedAgain = new Set();
const textsAgain = new Map();
for (const [at, file] of (files.length > maxFilesAgain ? [] : files).entries()) {
  console.log(`\n${file} once more, alone`);
  const again = join(reports, `again-${at}.json`);
  await run(
    join(bin, "node"),
    [
      ...[join("node_modules", "vitest", "vitest.mjs"), "run", "--maxWorkers=1", file],
      ...["--reporter=default", "--reporter=json", `--outputFile.json=${again}`],
    ],
    { PATH: `${bin}${delimiter}${process.env.PATH}` },
  );
  for (const { title, status, text } of testsOf(again) ?? []) {
    if (status === "passed") passedAgain.add(`${file} > ${title}`);
    else if (status === "failed") textsAgain.set(`${file} > ${title}`, text);
  }
}

const isFlaky = ({ file, title }) => passedAgain.has(`${file} > ${title}`);
const flaky = failed.filter(isFlaky);
const broken = failed.filter((test) => !isFlaky(test));
console.log("");
for (const test of flaky) print("FLAKY (failed, passed alone)", test);
for (const test of broken) {
  const textAgain = textsAgain.get(`${test.file} > ${test.title}`);
  print(textAgain === undefined ? "FAILED" : "FAILED (twice)", test);
  if (textAgain !== undefined && textAgain !== test.text) print("… and alone", { ...test, text: textAgain });
}
if (flaky.length > 0) console.log(`${flaky.length} flaky`);
const passed = tests.filter(({ status }) => status === "passed").length + flaky.length;
const isOtherwiseBroken = code !== 0 && failed.length === 0;
console.log(`${passed} passed, ${broken.length + (isOtherwiseBroken ? 1 : 0)} failed`);
process.exitCode = broken.length > 0 || isOtherwiseBroken ? 1 : 0;
